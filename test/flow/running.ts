import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

/** The whole program as its users run it: a process of its own, told by environment, heard by its log. */
export interface Running {
  readonly urls: Readonly<Record<string, string>>
  readonly examples: Readonly<Record<string, string>>
  readonly process: ChildProcess
  /** Lines of the log so far. */
  readonly log: readonly Record<string, unknown>[]
  /** What was written beside the log. */
  readonly noise: readonly string[]
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL. */
  kill(): Promise<void>
}

/** Making a key of its own takes a program seconds. */
const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

/** An address for payments in AR, so that the program makes no wallet for them, either. */
const payee = 'A'.repeat(43)

/** Words for Node that run the program: as its first line says it. */
export const program = [
  '--single-threaded-gc',
  fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url)),
]

/** Builds of the addons that the tests run with are those of the program, too. */
export const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
const inheritedNames = ['LD_PRELOAD', 'ASAN_OPTIONS', 'UBSAN_OPTIONS', 'NODE_OPTIONS', 'TEST_STATEMENTS_FILE']
const inherited = inheritedNames.flatMap((name) => {
  const value = process.env[name]
  return value === undefined ? [] : [[name, value] as const]
})

/** The program plants its examples, which takes it longer than everything else of a start: for tests that name one of them. */
export const seeded = { DEVNET_SEED: 'true' }

/** What one thread does must count on the other: for tests that ask over many connections. */
export const twoEdges = { EDGE_THREADS: '2' }

/**
 * Does something at the test's end before its folders are removed. What is given to `t.teardown` behind `t.testdir` runs after
 * that: a program that still writes there would keep a folder from being removed.
 */
function firstAtEnd(t: Test, act: () => Promise<void>): void {
  const atEnd = t.onEOF.bind(t)
  t.onEOF = async () => {
    await act()
    await atEnd()
  }
}

/**
 * Starts `sluice start` on free ports, with one edge thread, without examples, and with its state in `dataPath`. It is killed at
 * the test's end if it still runs. Rejects with its output when it ends before it is up. `words`: for Node itself. `under`: a
 * command that becomes Node.
 */
export async function run(
  t: Test,
  dataPath: string,
  environment: Record<string, string> = {},
  words: readonly string[] = conditions,
  under: readonly string[] = [],
): Promise<Running> {
  const [command = '', ...rest] = [...under, process.execPath, ...words, ...program, 'start']
  const child = spawn(command, rest, {
    env: {
      ...Object.fromEntries(inherited),
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: dataPath,
      DEVNET_SEED: 'false',
      EDGE_THREADS: '1',
      UPLOAD_WALLET_FILE: wallet,
      PAYMENT_ARWEAVE_ADDRESS: payee,
      // A thread that gets no processor on a busy machine is well: replacing it would end the connections of the test.
      WATCHDOG_SECONDS: '120',
      // A second of processor time for each program that has nothing to do for some seconds.
      IDLE_MEMORY_SECONDS: '0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log: Record<string, unknown>[] = []
  const noise: string[] = []
  child.stderr.on('data', (text: Buffer) => noise.push(text.toString()))
  const exited = once(child, 'exit')
  firstAtEnd(t, async () => {
    child.kill('SIGKILL')
    await exited
  })
  const ready = new Promise<Record<string, unknown>>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text }
      log.push(line)
      if (line.msg === 'ready') resolve(line)
    })
  })
  const early = exited.then(([code]) => {
    throw new Error(`ended with ${code}: ${noise.join('')}${JSON.stringify(log.slice(-5))}`)
  })
  early.catch(() => 'told by the race, or an exit that was asked for')
  const { urls, examples } = (await Promise.race([ready, early])) as Pick<Running, 'urls' | 'examples'>
  return {
    urls,
    examples,
    process: child,
    log,
    noise,
    async stop() {
      child.kill('SIGTERM')
      return (await exited)[0] as number | null
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Runs `sluice` with some words to its end. */
export async function sluice(
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number; out: string; err: string }> {
  const child = spawn(process.execPath, [...program, ...words], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (text: Buffer) => {
    out += text.toString()
  })
  child.stderr.on('data', (text: Buffer) => {
    err += text.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, err }
}
