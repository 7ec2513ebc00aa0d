/** Style sheets are taken in by esbuild. */
declare module "*.css";
