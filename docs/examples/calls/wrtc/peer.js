// One end of a call of libwebrtc: A sends the clip, B receives it. See ../session.py for the environment.
import wrtc from "@roamhq/wrtc";
import fs from "node:fs";
import path from "node:path";

const { RTCPeerConnection, nonstandard } = wrtc;
const { TIDEGATE_SIDE: side, TIDEGATE_ADDRESS: address, CALL_FOLDER: folder, CALL_CLIP: clip } = process.env;
const NETWORK = address.replace(/\d+$/, "");
// bits a second: above the links of the scenarios, so that they are what limits the call
const MOST = Number(process.env.CALL_MAX_RATE ?? 3e6);

const begun = performance.now();
const seconds = () => (performance.now() - begun) / 1000;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const stats = fs.createWriteStream(path.join(folder, `stats-${side}.jsonl`));
const seen = { connected_s: null, frames: 0, late_ms: 0 };

// How late this process wakes tells of the machine: its worst since the last line of statistics.
function watch() {
  let due = performance.now() + 10;
  setInterval(() => {
    const now = performance.now();
    seen.late_ms = Math.max(seen.late_ms, now - due);
    due = now + 10;
  }, 10);
}

// Whoever reads a file of this name reads all of it: it gets the name when it is complete.
function tell(name, value) {
  const file = path.join(folder, name);
  fs.writeFileSync(`${file}.part`, JSON.stringify(value));
  fs.renameSync(`${file}.part`, file);
}

async function told(name) {
  const file = path.join(folder, name);
  while (!fs.existsSync(file)) await sleep(20);
  return JSON.parse(fs.readFileSync(file, "utf8"));
}

// The description with all candidates that lie in the session's network.
async function described(pc, description) {
  const gathered = new Promise((done) => {
    pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && done();
  });
  await pc.setLocalDescription(description);
  await gathered;
  const { type, sdp } = pc.localDescription;
  const lines = sdp.split("\r\n").filter((line) => !line.startsWith("a=candidate:") || line.split(" ")[4].startsWith(NETWORK));
  return { type, sdp: lines.join("\r\n") };
}

// The pictures of the clip at its own pace, over and over.
function play(source) {
  const bytes = fs.readFileSync(clip);
  const head = bytes.subarray(0, bytes.indexOf("\n")).toString("latin1");
  const number = (letter) => Number(head.match(new RegExp(` ${letter}(\\d+)`))[1]);
  const [width, height] = [number("W"), number("H")];
  const [, over, under] = head.match(/ F(\d+):(\d+)/);
  const size = (width * height * 3) / 2;
  const mark = "FRAME\n".length;
  const count = Math.floor((bytes.length - head.length - 1) / (size + mark));
  const interval = (1000 * Number(under)) / Number(over);
  const first = performance.now();
  let next = 0;
  const timer = () => {
    const at = head.length + 1 + (next % count) * (size + mark) + mark;
    source.onFrame({ width, height, data: new Uint8ClampedArray(bytes.subarray(at, at + size)) });
    next += 1;
    seen.frames = next;
    setTimeout(timer, Math.max(0, first + next * interval - performance.now()));
  };
  timer();
}

async function send(pc) {
  const source = new nonstandard.RTCVideoSource();
  const { sender } = pc.addTransceiver(source.createTrack(), { direction: "sendonly", sendEncodings: [{ maxBitrate: MOST }] });
  // a call whose pictures get smaller cannot be compared with one whose pictures do not; wrtc takes it now or never
  await sender.setParameters({ ...sender.getParameters(), degradationPreference: "maintain-resolution" });
  tell("offer.json", await described(pc, await pc.createOffer()));
  await pc.setRemoteDescription(await told("answer.json"));
  play(source);
}

async function receive(pc) {
  pc.ontrack = ({ track }) => {
    new nonstandard.RTCVideoSink(track).onframe = () => {
      seen.frames += 1;
      seen.first_frame_s ??= seconds();
    };
  };
  await pc.setRemoteDescription(await told("offer.json"));
  tell("answer.json", await described(pc, await pc.createAnswer()));
}

async function note(pc) {
  const report = [...(await pc.getStats()).values()];
  stats.write(`${JSON.stringify({ time_s: seconds(), unix_s: Date.now() / 1000, ...seen, report })}\n`);
  seen.late_ms = 0;
}

watch();
const pc = new RTCPeerConnection();
pc.onconnectionstatechange = () => {
  if (pc.connectionState === "connected") seen.connected_s ??= seconds();
};
// the session is over when its scenario is
process.on("SIGTERM", async () => {
  // without a connection there may be no answer
  await Promise.race([note(pc), sleep(1000)]);
  stats.end(() => process.exit(0));
});
await (side === "A" ? send(pc) : receive(pc));
setInterval(() => note(pc), 1000);
