// Runs test files as programs of their own, some at the same time.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A test that has not ended by then hangs, and says what it waited for. One time for all, and no file has a shorter one: it is there
 * for what never ends, and not for what is slow. Beside others each takes many times as long as alone.
 */
const testSeconds = 1200
/** A file that has not ended by now never will. */
const patienceMs = 40 * 60_000
/** Of what a file wrote, that much of each end is kept. */
const keptCharacters = 2_000_000

/**
 * Node reads the certificates that this names at each start: 80 ms of processor time on a slow machine, for each of some thousand
 * programs. Of the tests only npm asks servers with such certificates, and it has a setting of its own.
 */
const { NODE_EXTRA_CA_CERTS: certificates, ...surroundings } = process.env
const ofNpm = certificates === undefined ? {} : { npm_config_cafile: certificates }

/** What one file has made and others need, too, for example an empty database; it goes with this process. */
const sharedFolder = mkdtempSync(join(tmpdir(), 'sluice-shared-'))
// PostgreSQL has a user of its own.
chmodSync(sharedFolder, 0o711)
process.once('exit', () => rmSync(sharedFolder, { recursive: true, force: true }))

/** Processor time of the programs that this process has started and seen end, with those that they started, in seconds. */
function processorSeconds() {
  const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ')
  const [user = 0, system = 0] = fields.split(' ').slice(13, 15).map(Number)
  return (user + system) / 100
}

/** What a stream wrote: its beginning and its end. */
function kept(stream) {
  let first = ''
  let last = ''
  stream.setEncoding('utf8').on('data', (text) => {
    if (first.length < keptCharacters) first += text
    else last = (last + text).slice(-keptCharacters)
  })
  return () => first + last
}

/** Groups of processes that run, by the number of their first. */
const groups = new Set()

/** Ends a program with all that it started and left behind. */
function endGroup(pid, signal) {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    // Nobody is left.
    if (error.code !== 'ESRCH') throw error
  }
}

// Groups of their own do not get what a terminal sends to this process.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
])
  process.once(signal, () => {
    for (const pid of groups) endGroup(pid, 'SIGKILL')
    process.exit(code)
  })

/**
 * Runs Node with these words to its end, and ends what it left running. Resolves with how it ended, all that it wrote, its time in ms, and the processor time in
 * seconds of it and all that it started.
 */
export function ran(words, environment = {}) {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now()
    const child = spawn(process.execPath, words, {
      env: {
        TAP_TIMEOUT: String(testSeconds),
        TEST_SHARED_FOLDER: sharedFolder,
        ...ofNpm,
        ...surroundings,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    groups.add(child.pid)
    const stdout = kept(child.stdout)
    const stderr = kept(child.stderr)
    const ending = setTimeout(() => endGroup(child.pid, 'SIGTERM'), patienceMs)
    const killing = setTimeout(() => endGroup(child.pid, 'SIGKILL'), patienceMs + 30_000)
    let seconds = 0
    child.once('error', reject)
    // Where two end in the same moment, the first is given the time of both.
    child.once('exit', () => {
      const now = processorSeconds()
      seconds = now - counted
      counted = now
      // What a failed test left running would take time from all that follow.
      endGroup(child.pid, 'SIGKILL')
      groups.delete(child.pid)
    })
    child.once('close', (code, signal) => {
      clearTimeout(ending)
      clearTimeout(killing)
      resolve({
        code,
        signal,
        stdout: stdout(),
        stderr: stderr(),
        ms: performance.now() - startedMs,
        seconds,
      })
    })
  })
}

/** What was counted of programs that have ended. */
let counted = 0

/** How often it is looked whether there is room for one more. */
const lookMs = 1000
/** One more may begin where this share of all processors had nothing to do since the last look. */
const idleShare = 0.12
/** What the largest tests take at once: a machine whose memory is full would be slower with one more. */
const roomBytes = 3 * 1024 ** 3

/** Whether this machine, since the last call, had processors without work, and has memory for one more. */
function roomSeen() {
  const idle = () => cpus().reduce((sum, { times }) => sum + times.idle, 0)
  let [lastMs, lastIdle] = [performance.now(), idle()]
  return () => {
    const [nowMs, nowIdle] = [performance.now(), idle()]
    const share = (nowIdle - lastIdle) / ((nowMs - lastMs) * cpus().length)
    ;[lastMs, lastIdle] = [nowMs, nowIdle]
    return share > idleShare && process.availableMemory() > roomBytes
  }
}

/**
 * Gives each of `all` to `act`, in this order: `jobs` at the same time, and more, up to `most`, while processors have nothing to do.
 * What runs may only wait, for disks, timers and its own children.
 */
export async function inTurns(all, jobs, act, most = jobs) {
  const left = [...all]
  const see = roomSeen()
  let working = 0
  let hasRoom = false
  const work = async () => {
    working += 1
    while (left.length > 0 && (working <= jobs || hasRoom)) await act(left.shift())
    working -= 1
  }
  const workers = Array.from({ length: jobs }, work)
  const looking = setInterval(() => {
    hasRoom = see()
    if (hasRoom && left.length > 0 && working < most) workers.push(work())
  }, lookMs)
  // It grows meanwhile.
  for (const each of workers) await each
  clearInterval(looking)
}
