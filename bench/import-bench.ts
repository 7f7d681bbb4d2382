import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { encodeBase64url } from '../src/format/base64url.js'
import { encodeBundle } from '../src/format/bundle.js'
import { idOfBytes } from '../src/format/id.js'
import { tagOf } from '../src/format/tag.js'
import { dataTree } from '../src/proof/data-root.js'
import { sha256 } from '../src/proof/digest.js'
import { ed25519Signer, signItem } from '../src/proof/sign.js'
import { Dice } from './index-chain.js'

const help = `import-bench: sluice import of made-up bundles, from the files to the index on disk

  --items N     items in all (100000), 1000 a bundle, signed with Ed25519
  --payload N   bytes of each item's payload (400)

Bundles whose transactions are indexed already are opened, believed (--no-verify) and then proven (data roots and signatures, on
two more threads). Rates of the clock and of the processor, for other work on the machine changes only the first.
`

const program = fileURLToPath(new URL('../src/cli/sluice.js', import.meta.url))
const itemsPerBundle = 1000
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** A bundle of signed items with the tags of real ones: some that all have, some that nobody else has. */
function bundleOf(dice: Dice, payloadBytes: number): Uint8Array {
  const signers = Array.from({ length: 20 }, (_, rank) => ed25519Signer(Buffer.alloc(32, rank + 1)))
  const items = Array.from({ length: itemsPerBundle }, (_, at) => {
    const tags = [tagOf('App-Name', `app-${dice.zipf(200)}`), tagOf('Content-Type', 'application/json')]
    if (at % 2 === 0) tags.push(tagOf('Type', 'Message'))
    if (dice.next() < 0.5) tags.push(tagOf('Version', `1.${dice.zipf(50)}.0`))
    if (dice.next() < 0.3) tags.push(tagOf('File-Id', dice.bytes(16).toString('hex')))
    if (dice.next() < 0.3) tags.push(tagOf('Unix-Time', String(1_600_000_000 + dice.below(100_000_000))))
    const signer = signers[dice.zipf(signers.length)]
    if (signer === undefined) throw new Error('no signer')
    const target = dice.next() < 0.4 ? dice.bytes(32) : Buffer.alloc(0)
    const bytes = signItem(signer, { target, tags }, dice.bytes(payloadBytes))
    // Two bytes of type, then the signature, whose hash is the id.
    return { id: idOfBytes(sha256(bytes.subarray(2, 66))), bytes }
  })
  return encodeBundle(items)
}

/** Node JSON of one block a bundle. */
function writeChain(path: string, items: number, payloadBytes: number): number {
  for (const name of ['blocks', 'transactions', 'later']) mkdirSync(join(path, name), { recursive: true })
  const dice = new Dice(3)
  let previous = ''
  let bytes = 0
  for (let height = 0; height < items / itemsPerBundle; height += 1) {
    const data = bundleOf(dice, payloadBytes)
    bytes += data.length
    const signature = randomBytes(512)
    const id = idOfBytes(sha256(signature))
    const text = (name: string, value: string) => ({
      ...{ name: encodeBase64url(Buffer.from(name)), value: encodeBase64url(Buffer.from(value)) },
    })
    const header = {
      ...{ format: 2, id, last_tx: '', owner: encodeBase64url(randomBytes(512)), target: '', quantity: '0' },
      tags: [text('Bundle-Format', 'binary'), text('Bundle-Version', '2.0.0')],
      ...{ data: '', data_size: String(data.length), data_root: encodeBase64url(dataTree(data).root) },
      ...{ reward: '1', signature: encodeBase64url(signature) },
    }
    const hash = randomBytes(48).toString('base64url')
    const block = {
      ...{ indep_hash: hash, previous_block: previous, height, timestamp: 1_700_000_000 + height, txs: [id] },
      ...{ tx_root: '', weave_size: String(bytes), block_size: String(data.length) },
    }
    previous = hash
    writeFileSync(join(path, 'blocks', `${height}.json`), JSON.stringify(block))
    writeFileSync(join(path, 'transactions', `${id}.json`), JSON.stringify(header))
    writeFileSync(join(path, 'later', id), data)
  }
  return bytes
}

/** Runs the command; seconds of the clock and of the processor, all threads. */
function timed(dataPath: string, words: readonly string[]): { wall: number; cpu: number; out: string } {
  const report = join(dataPath, '..', 'time.txt')
  const command = `report=$0; TIMEFORMAT='%R %U %S'; { time "$@" 2>"$report.log"; } 2>"$report"`
  const done = spawnSync(
    '/bin/bash',
    ['-c', command, report, process.execPath, program, 'import', ...words],
    {
      env: { PATH: process.env.PATH ?? '', DATA_PATH: dataPath },
      encoding: 'utf8',
    },
  )
  if (done.status !== 0) throw new Error(`${done.stdout}${readFileSync(`${report}.log`, 'utf8')}`)
  const [wall = 0, user = 0, system = 0] = readFileSync(report, 'utf8').trim().split(' ').map(Number)
  return { wall, cpu: user + system, out: done.stdout + readFileSync(`${report}.log`, 'utf8') }
}

function main(): void {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '100000' },
      payload: { type: 'string', default: '400' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    say(help)
    return
  }
  const items = Number(values.items)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-import-bench-'))
  try {
    const path = join(folder, 'dump')
    const bytes = writeChain(path, items, Number(values.payload))
    say(`${items} items in ${Math.ceil(items / itemsPerBundle)} bundles, ${(bytes / 1e6).toFixed(0)} MB`)
    for (const [name, words] of [
      ['believed', ['--no-verify']],
      ['verified', []],
    ] as const) {
      const data = join(folder, name)
      mkdirSync(data)
      const idle = timed(data, [path, '--no-verify'])
      renameSync(join(path, 'later'), join(path, 'data'))
      const { wall, cpu, out } = timed(data, [path, ...words])
      renameSync(join(path, 'data'), join(path, 'later'))
      const [, told = '?'] = /items [\d ]+, ([\d ]+)\/s/.exec(out) ?? []
      const [, each = '?'] = /, (\d+) bytes each/.exec(out) ?? []
      const processor = Math.round(items / Math.max(cpu - idle.cpu, 0.01))
      say(
        `${name}: ${told} items/s, ${processor} per second of processor time, ${each} bytes each on disk ` +
          `(whole command ${wall.toFixed(1)} s)`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

main()
