//! `tidegate-bindgen IN.wasm OUT`: writes the files that a page needs of a wasm-bindgen module into the folder OUT.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let [_, module, folder] = &std::env::args().collect::<Vec<_>>()[..] else {
        eprintln!("usage: tidegate-bindgen IN.wasm OUT");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen
        .input_path(module)
        .typescript(true)
        .remove_name_section(true)
        .web(true)
        .and_then(|bindgen| bindgen.generate(folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
