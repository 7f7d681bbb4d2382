import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { named } from '../index/chain.js'
import { pageKinds } from '../index/page-kinds.js'
import { ownerCount } from '../index/repeated-chain.js'
import { say, table } from '../kit/say.js'

const help = `index-cold: how often a question waits for the disk while nothing of the index is in memory

  --folder PATH    an index that index-segments.js made: with --bulk --repeated --folder PATH
  --asks N         questions of each kind (4)
  --only NAME      one kind

Each question is asked by a process of its own. Before it, the page cache drops the files of the index (dd's nocache,
posix_fadvise(2)). Reads are major page faults: how often the thread waits for one page. KiB: what the disk read for it.
`

/** Ids and bundles that questions are about, in the order of the chain. */
interface Known {
  readonly ids: readonly string[]
  readonly bundles: readonly string[]
}

const knownCount = 50

function indexIn(folder: string): ChainIndex {
  const { environment } = openCatalogTables(join(folder, 'catalog'))
  return new ChainIndex(environment, new Generations())
}

/** What this process has read: major page faults, KiB. */
function readSoFar(): [faults: number, kib: number] {
  const { majorPageFault } = process.resourceUsage()
  const bytes = /^read_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'latin1'))?.[1]
  return [majorPageFault, Number(bytes) / 1024]
}

function knownOf(index: ChainIndex): Known {
  const { blocks } = index.counts()
  const [first] = index.blocks(0, Number.MAX_SAFE_INTEGER, false, 1)
  const rows = Array.from({ length: knownCount }, (_, at) => {
    const height = (first?.height ?? 0) + Math.floor((blocks * at) / knownCount)
    return index.stretch(height, height, undefined, 10).at(-1)
  })
  const there = rows.flatMap((row) => (row?.place === undefined ? [] : [row]))
  return {
    ids: there.map(({ id }) => Buffer.from(id).toString('hex')),
    bundles: there.map(({ place }) => Buffer.from(place?.parent ?? []).toString('hex')),
  }
}

const kindNames = ['id', 'absent id', ...pageKinds([], ownerCount).map(({ name }) => name)]

function ask(index: ChainIndex, kind: string, at: number, known: Known): void {
  const page = { backwards: true, limit: 100 }
  const bytes = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text, 'hex'))
  if (kind === 'id') index.row(bytes(known.ids)[(at * 7) % known.ids.length] as Buffer)
  else if (kind === 'absent id') index.row(named(9, at))
  else {
    const found = pageKinds(bytes(known.bundles), ownerCount).find(({ name }) => name === kind)
    if (found === undefined) throw new Error(`no kind of page is ${kind}`)
    const effort = new Effort(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, systemClock)
    index.rows(found.wanted(at), page, effort)
  }
}

/** Reads and KiB: of opening, and of the question. */
type Reads = readonly [openReads: number, openKib: number, reads: number, kib: number]

function askHere(folder: string, kind: string, at: number, known: Known): Reads {
  const [faults, kib] = readSoFar()
  const index = indexIn(folder)
  index.counts()
  const [openFaults, openKib] = readSoFar()
  ask(index, kind, at, known)
  const [endFaults, endKib] = readSoFar()
  return [openFaults - faults, openKib - kib, endFaults - openFaults, endKib - openKib]
}

function dropped(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' })
  }
}

const program = fileURLToPath(import.meta.url)

function inProcess<Answer>(args: readonly string[]): Answer {
  return JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: 'utf8' })) as Answer
}

function measure(folder: string, asks: number, only: string | undefined): void {
  const known = inProcess<Known>(['--folder', folder, '--known'])
  const opening: Reads[] = []
  const average = (list: readonly number[]): string =>
    (list.reduce((sum, one) => sum + one, 0) / list.length).toFixed(1)
  const lineOf = (name: string, reads: readonly number[], kib: readonly number[]): string[] => [
    name,
    `${Math.min(...reads)} to ${Math.max(...reads)}`,
    average(reads),
    average(kib),
  ]
  const lines = kindNames
    .filter((kind) => only === undefined || kind === only)
    .map((kind) => {
      const answers = Array.from({ length: asks }, (_, at) => {
        dropped(folder)
        const question = ['--folder', folder, '--kind', kind, '--at', String(at + 1)]
        return inProcess<Reads>([...question, '--of', JSON.stringify(known)])
      })
      opening.push(...answers)
      return lineOf(
        kind,
        answers.map(([, , reads]) => reads),
        answers.map(([, , , kib]) => kib),
      )
    })
  const open = lineOf(
    'opening the index',
    opening.map(([reads]) => reads),
    opening.map(([, kib]) => kib),
  )
  for (const line of table(['', 'reads', 'on average', 'KiB'], [open, ...lines])) say(line)
}

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    asks: { type: 'string', default: '4' },
    only: { type: 'string' },
    known: { type: 'boolean', default: false },
    kind: { type: 'string' },
    at: { type: 'string', default: '0' },
    of: { type: 'string', default: '{}' },
    help: { type: 'boolean', default: false },
  },
})
const { folder, kind } = values
if (values.help || folder === undefined) say(help)
else if (values.known) say(JSON.stringify(knownOf(indexIn(folder))))
else if (kind === undefined) measure(folder, Number(values.asks), values.only)
else say(JSON.stringify(askHere(folder, kind, Number(values.at), JSON.parse(values.of) as Known)))
