/**
 * ClickHouse's HTTP interface over the engine of the npm package `chdb`, as far as the tests need it: statements by POST, in the
 * body or as `query` with rows in the body; settings in the address; a user and a password; one statement at a time.
 *
 *     node clickhouse-server.js MODULE FOLDER PORT PASSWORD
 */
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'

interface Answer {
  bytes(): Uint8Array | undefined
}

interface Session {
  queryAsync(sql: string, options: { readonly format: string }): Promise<Answer>
}

const [module = '', folder = '', port = '', password = ''] = process.argv.slice(2)
const { Session: Engine } = createRequire(import.meta.url)(module) as {
  Session: new (path: string) => Session
}
const session = new Engine(join(folder, 'db'))
/** Words in the address that are no settings of a statement. */
const words = new Set(['query', 'database', 'wait_end_of_query', 'readonly'])
const statuses: Readonly<Record<string, number>> = { '516': 403, '60': 404, '81': 404, '159': 408 }
let before: Promise<unknown> = Promise.resolve()
let database = 'default'
/** Settings that hold now. They stay from one statement to the next, which mostly has the same: each takes a statement. */
const held = new Map<string, string>()

const run = (sql: string): Promise<Answer> => session.queryAsync(sql, { format: 'TabSeparated' })
const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

async function hold(settings: ReadonlyMap<string, string>): Promise<void> {
  for (const name of [...held.keys()].filter((one) => !settings.has(one))) {
    await run(`SET ${name} = DEFAULT`)
    held.delete(name)
  }
  for (const [name, value] of settings) {
    if (held.get(name) === value) continue
    await run(`SET ${name} = ${/^\d+$/.test(value) ? value : quoted(value)}`)
    held.set(name, value)
  }
}

async function carriedOut(url: URL, body: Buffer): Promise<Buffer> {
  const wanted = url.searchParams.get('database') ?? 'default'
  if (wanted !== database) await run(`USE \`${wanted}\``)
  database = wanted
  await hold(new Map([...url.searchParams].filter(([name]) => !words.has(name))))
  const query = url.searchParams.get('query')
  const file = join(folder, 'rows')
  try {
    if (query === null) {
      const text = body.toString()
      const [, format = 'TabSeparated'] = /\bFORMAT (\w+)\s*$/.exec(text) ?? []
      return Buffer.from((await session.queryAsync(text, { format })).bytes() ?? [])
    }
    writeFileSync(file, body)
    const [, into = '', format = ''] = /^(.*) FORMAT (\w+)$/s.exec(query) ?? []
    await run(`${into} FROM INFILE ${quoted(file)} FORMAT ${format}`)
    return Buffer.alloc(0)
  } finally {
    rmSync(file, { force: true })
  }
}

async function answered(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  if (request.url === '/ping') {
    response.end('Ok.\n')
    return
  }
  try {
    if (request.headers['x-clickhouse-key'] !== password) throw new Error('Code: 516. Authentication failed')
    const url = new URL(request.url ?? '/', 'http://engine')
    const work = before.then(() => carriedOut(url, Buffer.concat(pieces)))
    before = work.catch(() => undefined)
    response.end(await work)
  } catch (error) {
    const [, code = '1002'] = /Code: (\d+)/.exec(String(error)) ?? []
    response.writeHead(statuses[code] ?? 500, { 'x-clickhouse-exception-code': code })
    response.end(String(error))
  }
}

createServer((request, response) => void answered(request, response)).listen(Number(port), '127.0.0.1')
