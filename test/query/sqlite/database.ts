import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { idBytes } from '../../../src/format/id.js'
import { inChainOrder, type ModelRow } from '../../catalog/index-model.js'
import { scratch } from '../../scratch.js'
import type { Story } from './story.js'

const program = 'sqlite3'
/** For tests that need it: skipped where it is not installed, but not in CI. */
export const sqliteAbsent =
  spawnSync(program, ['--version']).status === 0 || process.env.CI === 'true'
    ? {}
    : { skip: 'sqlite3 is not installed (Debian: sqlite3)' }

const outputMaxBytes = 2 ** 30
const rowsAtOnce = 500

/** In SQL everything that is bytes is text in hex: compared in the order of bytes, and free of quotes. */
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
export const quoted = (text: string): string => `'${text}'`

const schema = `
CREATE TABLE rows (id TEXT PRIMARY KEY, height INT, place INT, item INT, owner TEXT, recipient TEXT, parent TEXT,
  seen INT, about TEXT);
CREATE TABLE tags (id TEXT, position INT, name TEXT, value TEXT);
`
const indexes = 'CREATE INDEX by_tag ON tags (name, value); CREATE INDEX by_id ON tags (id);'
/** Chain order: what is in no block is newer than all blocks, in the order of arrival. */
const order = ['height IS NULL', 'height', 'place', 'item', 'id']

/** A question in SQL. */
export interface SqlQuestion {
  /** A condition of `rows`. */
  readonly where: string
  readonly newestFirst: boolean
}

/** The rows of a story in SQLite, by its command line program: each question gets the ids in order, in hex. */
export class SqliteRows {
  readonly #folder = scratch('sqlite')
  readonly #file = join(this.#folder, 'rows')

  /** Takes the rows of this moment; what was there before goes. */
  load(story: Story): void {
    rmSync(this.#file, { force: true })
    const rows = [...story.model.rows.values()].sort(inChainOrder)
    const sql = [schema, 'PRAGMA synchronous = OFF; BEGIN;']
    for (let at = 0; at < rows.length; at += rowsAtOnce) {
      const some = rows.slice(at, at + rowsAtOnce)
      sql.push(`INSERT INTO rows VALUES ${some.map((row) => valuesOf(row, story)).join(',')};`)
      const tags = some.flatMap(({ id, input }) =>
        input.tags.map(({ name, value }, position) => {
          const parts = [hexOf(idBytes(id)), position, hexOf(name), hexOf(value)]
          return `(${parts.map((part) => `'${part}'`).join(',')})`
        }),
      )
      if (tags.length > 0) sql.push(`INSERT INTO tags VALUES ${tags.join(',')};`)
    }
    this.#run([...sql, 'COMMIT;', indexes].join('\n'))
  }

  /** The ids that each question finds. */
  ask(questions: readonly SqlQuestion[]): string[][] {
    const sql = questions.map(({ where, newestFirst }) => {
      const by = order.map((column) => `${column}${newestFirst ? ' DESC' : ''}`).join(', ')
      return `SELECT '-'; SELECT id FROM rows WHERE ${where} ORDER BY ${by};`
    })
    const lines = this.#run(sql.join('\n')).split('\n')
    const answers: string[][] = []
    for (const line of lines) {
      if (line === '-') answers.push([])
      else if (line !== '') answers.at(-1)?.push(line)
    }
    return answers
  }

  /** Each row as JSON, by its id in hex. */
  rows(): Map<string, unknown> {
    const lines =
      this.#run(`SELECT json_object('id', id, 'height', height, 'owner', owner, 'recipient', recipient,
      'parent', parent, 'seen', seen, 'about', about, 'tags', (SELECT json_group_array(name || '=' || value)
      FROM (SELECT name, value FROM tags WHERE tags.id = rows.id ORDER BY CAST(position AS INT)))) FROM rows;`)
    const rows = lines.split('\n').filter((line) => line !== '')
    return new Map(rows.map((line) => [(JSON.parse(line) as { id: string }).id, JSON.parse(line) as unknown]))
  }

  #run(sql: string): string {
    const { status, stdout, stderr, error } = spawnSync(program, ['-batch', '-bail', this.#file], {
      input: sql,
      encoding: 'utf8',
      maxBuffer: outputMaxBytes,
    })
    if (status !== 0) throw new Error(`${program}: ${error?.message ?? stderr.slice(0, 2000)}`)
    return stdout
  }
}

/** What no question is about, as one text: size, anchor, amounts, and what is known of the block. */
export function aboutText(parts: {
  size: string
  anchor: string
  quantity: string
  fee: string
  signatureType: number | null
  block: string | null
  time: number | null
}): string {
  const { size, anchor, quantity, fee, signatureType, block, time } = parts
  return [size, anchor, quantity, fee, signatureType ?? '-', block ?? '-', time ?? '-'].join(' ')
}

function valuesOf({ id, height, index, input }: ModelRow, { model, seen }: Story): string {
  const isItem = 'parentId' in input
  const block = height === undefined ? undefined : model.blocks.get(height)
  const about = aboutText({
    size: String(input.size),
    anchor: hexOf(input.anchor),
    quantity: String(isItem ? 0 : input.quantity),
    fee: String(isItem ? 0 : input.reward),
    signatureType: input.signatureType ?? null,
    block: block?.id ?? null,
    time: block?.timestamp ?? null,
  })
  const texts = [hexOf(input.ownerAddress), hexOf(input.target)].map(quoted)
  const parent = isItem ? quoted(hexOf(idBytes(input.parentId))) : 'NULL'
  const place = [height ?? 'NULL', index, Number(isItem)]
  return `(${[quoted(hexOf(idBytes(id))), ...place, ...texts, parent, seen.get(id) ?? 0, quoted(about)].join(',')})`
}
