/** Settings that a table lists, and that nothing reads, would be accepted and have no effect. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { foreign } from '../../config/foreign.js'
import { listSettings, listTables, type SettingsTable } from '../../config/read.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Tables that a room gets whole, as options of its own. */
const rooms: Partial<Record<SettingsTable, string>> = { queries: 'src/query/' }

interface Text {
  readonly path: string
  readonly text: string
}

function textsOf(folder: string): Text[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return textsOf(path)
    if (!path.endsWith('.ts')) return []
    const text = readFileSync(join(root, path), 'utf8')
    return [{ path, text: text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '') }]
  })
}

/** Whether a file reads this value of this table, as far as its text shows: `table.key`, or `{ key }` beside the table's name. */
function reads({ path, text }: Text, table: string, key: string): boolean {
  const isConfig = path.startsWith('config/')
  const room = rooms[table as SettingsTable]
  const isNamed =
    new RegExp(`\\b${table}\\b`).test(text) || isConfig || (room !== undefined && path.startsWith(room))
  // In a table `key: whole(...)` declares it.
  const taken = isConfig ? '[,}=]' : '[,}=:]'
  return isNamed && new RegExp(`\\.\\s*${key}\\b|[{,]\\s*${key}\\s*${taken}`).test(text)
}

t.test('each setting of each table is read', async (t) => {
  const texts = ['src', 'workers', 'config'].flatMap(textsOf)
  const unread = Object.entries(listTables()).flatMap(([table, rows]) =>
    Object.entries(rows).flatMap(([key, { env }]) =>
      texts.some((one) => reads(one, table, key)) ? [] : [`${env} (${table}.${key})`],
    ),
  )
  t.same(unread, [])
  const declared = { path: 'config/x.ts', text: "x: whole({ env: 'X' })" }
  t.notOk(reads(declared, 'x', 'x'), 'a declaration is no use')
})

t.test('no setting is said to mean nothing here', async (t) => {
  t.same(
    listSettings()
      .map(({ env }) => env)
      .filter((env) => foreign.has(env)),
    [],
  )
})
