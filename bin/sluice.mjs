#!/usr/bin/env -S node --single-threaded-gc
// The `sluice` command. It works in a checkout before any build, too: then it says what is missing.
import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

// V8 has four threads that collect garbage for all threads of the program, at the priority of none of them: while they clear up
// after a query or a bundle, they keep the processor from threads that answer requests. So each thread collects its own garbage,
// at its own priority: docs/decisions/garbage-collection.md. The word in the first line is given by package.json, the unit and
// the container, too. Where it is not given, this much can still be had: V8 stops when flags about marking change in a program
// that runs, but the young garbage is nearly all.
setFlagsFromString('--no-parallel-scavenge')
// V8 takes a thread that allocates little for one without work, and collects all of its garbage to save memory. An edge thread that repeats
// answers without JavaScript allocates little at any load: it stopped for up to 30 ms. Memory is given back where there really is no work
// (src/actor/idle-memory.ts). It holds for the threads that are started from now on.
setFlagsFromString('--no-memory-reducer')

const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number)
const program = new URL('../dist/sluice.js', import.meta.url)

/** What keeps the program from running, and the way on; undefined where nothing does. */
function missing() {
  // The first versions of each line that can load an ES module by `require`.
  const needed = { 20: 19, 22: 12 }[major]
  if (major < 20 || major === 21 || minor < (needed ?? 0))
    return `sluice needs Node.js 20.19, 22.12, or newer; this is ${process.versions.node}`
  if (existsSync(program)) return undefined
  const isInstalled = existsSync(new URL('../node_modules', import.meta.url))
  return `sluice is not built yet. Run: ${isInstalled ? '' : 'npm ci && '}npm run build`
}

/**
 * The first versions of each line whose V8 does not slow down where strangers choose strings of digits (CVE-2026-21717): JSON of
 * some hundred kilobytes, such as a manifest, keeps a thread of older ones busy for many seconds.
 */
function outdated() {
  const [wantedMinor, wantedPatch] = { 20: [20, 2], 22: [22, 2], 24: [14, 1], 25: [8, 2] }[major] ?? [0, 0]
  if (minor > wantedMinor || (minor === wantedMinor && patch >= wantedPatch)) return undefined
  const wanted = `${major}.${wantedMinor}.${wantedPatch}`
  return `Node.js ${process.versions.node} lets strangers stop this program for seconds (CVE-2026-21717): update to ${wanted} or newer`
}

// It asks a program that runs to read its settings again (src/cli/start.ts). One that is only about to read them would be ended by it.
if (process.argv[2] === 'start' && !process.stdout.isTTY) process.on('SIGHUP', () => undefined)

const trouble = missing()
const weakness = process.argv[2] === 'start' ? outdated() : undefined
if (weakness !== undefined) process.stderr.write(`${weakness}\n`)
if (trouble === undefined) await import(program.href)
else {
  process.stderr.write(`${trouble}\n`)
  process.exitCode = 1
}
