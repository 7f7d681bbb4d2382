import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { idOfBytes } from '../../src/format/id.js'
import { Seeding } from '../corpus/seed.js'
import { emptyFolder, sluiceWords } from '../kit/folders.js'
import { say } from '../kit/say.js'

const help = `start-time: from the start of the program to its line \`ready\`, after a kill, by what lies on the disk

  --objects N  contents of 440 bytes with their records in catalog and segments (1000)
  --records N  further payloads in segments that no record names (0)
  --starts N   how often (5)
  --folder F   where DATA_PATH of before lies, or is made and kept; without it one is made and removed
`

const bytes = randomFillSync(Buffer.alloc(440))

function payload(at: number): { readonly digest: Buffer; readonly bytes: Buffer } {
  bytes.writeUInt32LE(at)
  return { digest: createHash('sha256').update(bytes).digest(), bytes }
}

async function fill(folder: string, objects: number, records: number): Promise<void> {
  const seeding = new Seeding(folder)
  for (let at = 0; at < objects; at += 1) {
    const { digest } = payload(at)
    const id = idOfBytes(createHash('sha256').update(digest).digest())
    await seeding.content({ id, size: bytes.length, contentType: 'text/plain', digest }, bytes)
  }
  for (let at = 0; at < records; at += 1) {
    seeding.payload(payload(objects + at).digest, bytes)
    if (at % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await seeding.close()
}

/** Processor time that a process has had, in ms; the kernel counts in hundredths of a second. */
function cpuMs(child: ChildProcess): number {
  const [, ...fields] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')
  const numbers = fields.join(') ').split(' ')
  return (Number(numbers[11]) + Number(numbers[12])) * 10
}

async function start(folder: string): Promise<{ readonly ms: number; readonly cpuMs: number }> {
  const from = performance.now()
  const wallet = new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url).pathname
  const child = spawn(process.execPath, [...sluiceWords, 'start'], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: folder,
      EDGE_THREADS: '2',
      DEVNET_SEED: 'false',
      UPLOAD_WALLET_FILE: wallet,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"msg":"ready"')) break
  const found = { ms: performance.now() - from, cpuMs: cpuMs(child) }
  child.kill('SIGKILL')
  await exited
  return found
}

async function measure(folder: string, objects: number, records: number, starts: number): Promise<void> {
  if (!existsSync(join(folder, 'catalog'))) await fill(folder, objects, records)
  // The first one makes keys.
  await start(folder)
  const found: { readonly ms: number; readonly cpuMs: number }[] = []
  for (let round = 0; round < starts; round += 1) found.push(await start(folder))
  const middle = (values: number[]): string =>
    `${(values.sort((one, other) => one - other)[values.length >> 1] ?? 0).toFixed(0)} ms, ` +
    `${(values[0] ?? 0).toFixed(0)} to ${(values.at(-1) ?? 0).toFixed(0)}`
  say(`${objects} objects, ${records} further records: ready after ${middle(found.map(({ ms }) => ms))}`)
  say(`processor time until then ${middle(found.map((one) => one.cpuMs))}`)
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    objects: { type: 'string' },
    records: { type: 'string' },
    starts: { type: 'string' },
    folder: { type: 'string' },
  },
})
if (values.help === true) say(help)
else {
  const folder = values.folder ?? emptyFolder('start-time')
  const [objects, records] = [Number(values.objects ?? 1000), Number(values.records ?? 0)]
  await measure(folder, objects, records, Number(values.starts ?? 5))
  if (values.folder === undefined) rmSync(folder, { recursive: true })
}
