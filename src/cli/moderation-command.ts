import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { checkWhileIdle } from '../main/data-folder.js'
import { type ListLine, readDocument, readLines, readWord } from '../moderation/list-reader.js'
import { type Blocked, moderationPath, type Subject } from '../moderation/moderation-messages.js'
import { ModerationStore } from '../moderation/moderation-store.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

const help = `sluice moderation: what the gateway does not serve

Usage: sluice moderation list [--source NAME] [--limit N] [--json]
       sluice moderation block WHAT --source NAME [--notes TEXT]
       sluice moderation release WHAT | --source NAME
       sluice moderation import FILE --source NAME [--notes TEXT]
       sluice moderation audit [--limit N]

WHAT is an id, a SHA-256 of content in hexadecimal (or hash:BASE64URL), or a name; name:WHAT where a name looks like an id.
An undername (under_name) is a name of its own: blocking a name leaves its undernames served.
Works on DATA_PATH/moderation. A running gateway applies the change within a second. Each change leaves a line in the audit.

FILE holds one entry a line (comments behind #), or JSON: a list of texts, or of objects with id, hash or name. With - as
FILE it is read from standard input.

Examples:
  sluice moderation block mBS8qJpQOXGR9C9yF9q9fdBjEHBwEUHIlY1IRgVtCV0 --source court --notes "order 12/26"
  sluice moderation release --source "list of may"          every entry that came from there
  curl -s https://example.org/list.txt | sluice moderation import - --source example.org
`

/** Entries written in one transaction: a running gateway waits for one transaction at most before it writes. */
const batch = 5000
/** Longer JSON documents are refused, because they are read into memory. Lists by line may have any length. */
const documentMaxBytes = 256 << 20

interface Wishes {
  readonly source?: string | undefined
  readonly notes?: string | undefined
  readonly limit?: string | undefined
  readonly json?: boolean | undefined
}

/** Reads and changes the block list. Exit code 2 for wrong usage, 1 where nothing was found. */
export async function moderationCommand(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      json: { type: 'boolean' },
      source: { type: 'string' },
      notes: { type: 'string' },
      limit: { type: 'string' },
    },
    allowPositionals: true,
  })
  const [what = '', subject] = positionals
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const act = Object.hasOwn(acts, what) ? acts[what] : undefined
  if (act === undefined)
    return wrong('give list, block, release, import or audit; see sluice moderation --help')
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config.join('\n  '))
  const root = resolve(config.server.dataPath)
  if (!existsSync(root)) return wrong(`there is nothing at ${root}: set DATA_PATH`)
  await checkWhileIdle(root)
  const store = new ModerationStore(moderationPath(root))
  try {
    return await act(store, subject, values)
  } finally {
    await store.close()
  }
}

type Act = (store: ModerationStore, subject: string | undefined, wishes: Wishes) => number | Promise<number>

const acts: Readonly<Record<string, Act>> = { list, block, release, import: importFile, audit }

function wrong(message: string): number {
  process.stderr.write(`sluice moderation: ${message}\n`)
  return exitCode.usage
}

/** User of this machine, for the audit. */
function by(): string {
  return `${userInfo().username} by command`
}

function nowSeconds(): number {
  return Math.floor(systemClock.now() / 1000)
}

function list(store: ModerationStore, _: string | undefined, wishes: Wishes): number {
  const limit = Number(wishes.limit ?? 1000)
  const entries = store.newest(Number.MAX_SAFE_INTEGER, limit, wishes.source)
  for (const entry of entries) {
    process.stdout.write(wishes.json === true ? `${JSON.stringify(entry)}\n` : `${lineOf(entry)}\n`)
  }
  const { id, hash, name } = store.counts()
  if (wishes.json !== true) process.stdout.write(`${id} ids, ${hash} hashes, ${name} names are blocked\n`)
  return 0
}

function lineOf({ kind, key, source, notes, blockedAtSeconds }: Blocked): string {
  const time = new Date(blockedAtSeconds * 1000).toISOString().slice(0, 19)
  return [time, kind.padEnd(4), key.padEnd(43), source, notes].map(plain).join('  ')
}

/** Notes come from foreign lists, so control characters are removed: a terminal would obey them. */
function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}

function block(store: ModerationStore, word: string | undefined, { source, notes = '' }: Wishes): number {
  const subject = word === undefined ? 'name what to block' : readWord(word)
  if (typeof subject === 'string') return wrong(subject)
  if (source === undefined) return wrong('give the source of this decision: --source NAME')
  store.block([subject], { source, notes }, nowSeconds(), true)
  const what = `${subject.kind} ${subject.key}`
  store.note({ atSeconds: nowSeconds(), by: by(), action: 'block', what, source, notes })
  process.stdout.write(`blocked: ${what}\n`)
  return 0
}

function release(store: ModerationStore, word: string | undefined, { source }: Wishes): number {
  if ((word === undefined) === (source === undefined)) return wrong('give what to release, or --source NAME')
  const subject = readWord(word ?? '')
  if (word !== undefined && typeof subject === 'string') return wrong(subject)
  let released = 0
  if (source === undefined) released = store.release([subject as Subject]).length
  else {
    for (;;) {
      const entries = store.newest(Number.MAX_SAFE_INTEGER, batch, source)
      if (entries.length === 0) break
      released += store.release(entries).length
    }
  }
  const what =
    source === undefined ? `${(subject as Subject).kind} ${(subject as Subject).key}` : `all of ${source}`
  if (released > 0)
    store.note({ atSeconds: nowSeconds(), by: by(), action: 'release', what: `${what}: ${released}` })
  process.stdout.write(
    released === 0 ? `not blocked: ${plain(what)}\n` : `released: ${plain(what)}, ${released}\n`,
  )
  return released === 0 ? 1 : 0
}

function audit(store: ModerationStore, _: string | undefined, { limit = '50' }: Wishes): number {
  for (const { atSeconds, by: who, action, what, source = '', notes = '' } of store.audit(Number(limit))) {
    const time = new Date(atSeconds * 1000).toISOString().slice(0, 19)
    process.stdout.write(`${[time, action.padEnd(7), what, source, notes, who].map(plain).join('  ')}\n`)
  }
  return 0
}

async function importFile(store: ModerationStore, file: string | undefined, wishes: Wishes): Promise<number> {
  const { source, notes = '' } = wishes
  if (file === undefined) return wrong('name a file, or - for standard input')
  if (source === undefined) return wrong('give the source of the list: --source NAME')
  if (file !== '-' && !existsSync(file)) return wrong(`there is no file ${file}`)
  const lines = listOf(file)
  if (typeof lines === 'string') return wrong(lines)
  const progress = { read: 0, fresh: 0, known: 0, bad: 0 }
  let waiting: Subject[] = []
  const flush = (): void => {
    const fresh = store.block(waiting, { source, notes }, nowSeconds()).length
    progress.fresh += fresh
    progress.known += waiting.length - fresh
    waiting = []
    if (process.stderr.isTTY) process.stderr.write(`\r${progressLine(progress)}`)
  }
  for await (const line of lines) {
    progress.read += 1
    if (typeof line === 'string') {
      progress.bad += 1
      if (progress.bad <= 20)
        process.stderr.write(`${paint('red', 'skipped', process.stderr)}  ${plain(line)}\n`)
    } else waiting.push(line)
    if (waiting.length >= batch) flush()
  }
  flush()
  const what = `${progress.fresh} of ${progress.read} entries`
  store.note({ atSeconds: nowSeconds(), by: by(), action: 'import', what, source, notes })
  process.stdout.write(`${process.stderr.isTTY ? '\r' : ''}${progressLine(progress)}\n`)
  return progress.read > 0 && progress.bad === progress.read ? 1 : 0
}

function progressLine({
  read,
  fresh,
  known,
  bad,
}: {
  read: number
  fresh: number
  known: number
  bad: number
}): string {
  return `${read} read: ${fresh} blocked, ${known} were blocked already, ${bad} not understood`
}

/** The lines of a list; the whole text of a file that begins like a document of JSON and is one. */
function listOf(file: string): AsyncIterable<ListLine> | Iterable<ListLine> | string {
  if (file !== '-' && statSync(file).size <= documentMaxBytes) {
    try {
      return readDocument(JSON.parse(readFileSync(file, 'utf8')) as unknown)
    } catch {
      // Not one document: a list by line, each of which may be JSON.
      return readLines(createInterface({ input: createReadStream(file) }))
    }
  }
  return readLines(createInterface({ input: file === '-' ? process.stdin : createReadStream(file) }))
}
