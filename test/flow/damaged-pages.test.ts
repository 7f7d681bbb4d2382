/**
 * Pages of a database are overwritten, while the program runs or between two runs (DAMAGES rounds, else 2). It may end, and say
 * what to do; it must never give a wrong byte, and never end again and again.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  cpSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { type Id, idBytes, idOfBytes, parseId } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { upstream } from '../source/rig.js'
import { payloadOf } from '../store/segments/rig.js'
import { damageKinds, spoiltPage } from '../store/spoilt-page.js'
import { type Running, run } from './running.js'

const rounds = Number(process.env.DAMAGES ?? 2)
t.setTimeout(1_200_000 + rounds * 60_000)

const pageBytes = 4096
/** Starts of the program with one damage: the second shows whether the first has mended it. */
const livesMax = process.env.DAMAGES === undefined ? 2 : 3

function contentOf(id: Id): Buffer {
  const [low = 0, high = 0, ...seed] = idBytes(id)
  return payloadOf(1 + ((low * 256 + high) % 40_000), Buffer.from(seed).readUInt32LE(0))
}

function below(count: number): number {
  return Math.floor(random() * count)
}

/** Overwrites some pages of a database behind its two headers, and says how. */
function damage(file: string): string {
  const open = openSync(file, 'r+')
  try {
    const pages = Math.floor(fstatSync(open).size / pageBytes)
    const kind = damageKinds[below(damageKinds.length)] ?? 'noise'
    const [page, other] = [Buffer.alloc(pageBytes), Buffer.alloc(pageBytes)]
    const done: number[] = []
    for (let count = 1 + below(8); count > 0 && pages > 2; count -= 1) {
      const number = 2 + below(pages - 2)
      readSync(open, page, 0, pageBytes, number * pageBytes)
      readSync(open, other, 0, pageBytes, (2 + below(pages - 2)) * pageBytes)
      writeSync(open, spoiltPage(page, other, kind, number), 0, pageBytes, number * pageBytes)
      done.push(number)
    }
    return `${kind} in pages ${done.join(' ')} of ${pages}`
  } finally {
    closeSync(open)
  }
}

/** Folders with a database, from DATA_PATH on. */
function databasesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(({ name, parentPath }) => name === 'data.mdb' && !/\.broken/.test(parentPath))
    .map(({ parentPath }) => parentPath.slice(root.length + 1))
    .sort()
}

/** What an operator does where a start says so. */
function obey(root: string, printed: string): void {
  const [, name = ''] = /([\w-]+)\/data\.mdb(?: is broken)?:/.exec(printed) ?? []
  const path = join(root, name)
  if (name === '' || !existsSync(join(path, 'data.mdb'))) throw new Error(`no file is named: ${printed}`)
  if (!/What to do: .{30}|See "A database is broken"/.test(printed))
    throw new Error(`no way on is named: ${printed}`)
  const away = `${path}.broken`
  rmSync(away, { recursive: true, force: true })
  if (name !== 'uploads') {
    renameSync(path, away)
    return
  }
  mkdirSync(away)
  for (const file of ['data.mdb', 'lock.mdb']) renameSync(join(path, file), join(away, file))
}

t.test('overwritten pages cost what they held, and never a wrong byte or start after start', async (t) => {
  const server = await upstream((request, response) => {
    const id = parseId(request.url?.replace('/raw/', '') ?? '')
    if (id === undefined) return void response.writeHead(404).end()
    const body = contentOf(id)
    response.writeHead(200, { 'content-length': body.length, 'content-type': 'application/octet-stream' })
    response.end(body)
  })
  t.teardown(() => server.close())
  const environment = {
    SERVICES: 'gateway,upload',
    UPLOAD_FREE_ITEM_BYTES: '1000000',
    UPLOAD_FREE_WALLET_BYTES: String(2 ** 40),
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [server.url]: 1 }),
    CONTENT_SEGMENT_BYTES: String(8 * 2 ** 20),
  }
  const anyId = (): Id => idOfBytes(randomBytes(32))
  const known = Array.from({ length: 600 }, anyId)
  const signer = ed25519Signer(randomBytes(32))

  const read = async (url: string, id: Id): Promise<boolean> => {
    let body: Buffer
    try {
      const answer = await fetch(`${url}/${id}`, { signal: AbortSignal.timeout(60_000) })
      body = Buffer.from(await answer.arrayBuffer())
      if (answer.status !== 200) return false
    } catch {
      return false
    }
    if (!body.equals(contentOf(id))) throw new Error(`wrong bytes of ${id}`)
    return true
  }
  const accepted: { readonly id: Id; readonly payload: Buffer }[] = []
  const upload = async (url: string): Promise<void> => {
    const payload = randomBytes(500)
    const bytes = signItem(signer, { anchor: randomBytes(32) }, payload)
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
    const headers = { 'content-type': 'application/octet-stream' }
    try {
      const answer = await fetch(`${url}/tx`, {
        method: 'POST',
        body: bytes,
        headers,
        signal: AbortSignal.timeout(60_000),
      })
      if (answer.status === 200 && (await answer.text()).includes(header.id))
        accepted.push({ id: header.id, payload })
    } catch {
      // It has ended: nobody was promised anything.
    }
  }
  const isServed = async (url: string, { id, payload }: (typeof accepted)[number]): Promise<boolean> => {
    const answer = await fetch(`${url}/${id}`)
    const body = Buffer.from(await answer.arrayBuffer())
    if (answer.status !== 200) return false
    if (!body.equals(payload)) throw new Error(`wrong bytes of ${id}`)
    return true
  }
  const query = async (url: string): Promise<void> => {
    const text = '{ transactions(first: 50) { edges { node { id tags { name value } block { height } } } } }'
    const body = JSON.stringify({ query: text })
    const headers = { 'content-type': 'application/json' }
    await fetch(`${url}/graphql`, {
      method: 'POST',
      body,
      headers,
      signal: AbortSignal.timeout(60_000),
    }).catch(() => 'it has ended')
  }
  /** Some of everything; returns how many reads were answered. */
  const load = async ({ urls }: Running, forMs: number): Promise<number> => {
    let answered = 0
    const end = performance.now() + forMs
    const many = (count: number, act: () => Promise<unknown>) =>
      Array.from({ length: count }, async () => {
        while (performance.now() < end) {
          await act()
          await pause(1)
        }
      })
    const { gateway = '', upload: uploads = '' } = urls
    const one = async (): Promise<void> => {
      const id = random() < 0.8 ? (known[below(known.length)] as Id) : anyId()
      if (await read(gateway, id)) answered += 1
    }
    await Promise.all([...many(4, one), ...many(1, () => upload(uploads)), ...many(1, () => query(gateway))])
    return answered
  }

  const sound = scratch('damaged-pages')
  const first = await run(t, sound, environment)
  for (const id of known)
    if (!(await read(first.urls.gateway ?? '', id))) throw new Error('it was not served')
  await load(first, 1000)
  t.equal(await first.stop(), 0)

  const before = accepted.length
  const endings: Record<string, number> = {}
  const count = (what: string): void => {
    endings[what] = (endings[what] ?? 0) + 1
  }
  const only = process.env.DAMAGED
  for (let round = 0; round < rounds; round += 1) {
    const root = scratch('damaged-pages')
    accepted.length = before
    cpSync(sound, root, { recursive: true, filter: (path) => !path.endsWith('/.claim') })
    const names = databasesOf(root).filter(
      (name) => name !== 'devnet' && (only === undefined || name === only),
    )
    const name = names[round % names.length] ?? ''
    const file = join(root, name, 'data.mdb')
    const isRunning = random() < 0.6
    let how = isRunning ? '' : damage(file)
    const followed: string[] = []
    /** Starts until it is up, as an operator and a supervisor of processes do. */
    const up = async (): Promise<Running> => {
      for (let tries = 0; ; tries += 1) {
        if (tries > 4) throw new Error(`it does not start: ${name}, ${how}\n${followed.join('\n')}`)
        let early: Error
        try {
          return await run(t, root, environment)
        } catch (error) {
          early = error as Error
        }
        followed.push(early.message.slice(0, 600))
        if (early.message.startsWith('ended with null')) count('signal at a start')
        else {
          count('start refused')
          obey(root, early.message)
        }
      }
    }
    let signals = 0
    for (let life = 0; life < livesMax; life += 1) {
      const program = await up()
      if (life === 0 && isRunning) {
        await load(program, 300)
        how = damage(file)
      }
      // On a busy machine the first answer may take longer than the load.
      const answered = (await load(program, life === 0 ? 1000 : 500)) || (await load(program, 10_000))
      const { exitCode, signalCode } = program.process
      if (signalCode !== null) {
        signals += 1
        count(`signal while it ran (${signalCode})`)
        followed.push(`life ${life}: ${signalCode} ${program.noise.join('').slice(-400)}`)
      } else if (exitCode !== null) {
        count('ended by itself')
        followed.push(`life ${life}: ${exitCode} ${JSON.stringify(program.log.slice(-2))}`)
      } else {
        if (answered === 0) throw new Error(`nothing is answered: ${name}, ${how}`)
        const isDamaged = program.log.some(({ msg }) => /damaged|broken/.test(String(msg)))
        count(isDamaged ? 'went on and said so' : 'went on')
        if (life === livesMax - 1)
          for (const one of accepted)
            await eventually('the content is served', () => isServed(program.urls.gateway ?? '', one)).catch(
              () => {
                throw new Error(`${one.id} was accepted and is lost: ${name}, ${how}\n${followed.join('\n')}`)
              },
            )
      }
      await program.kill()
    }
    t.ok(
      signals <= 1,
      `${name}: ${how}${isRunning ? ', while it ran' : ''}; ${signals} signals\n${followed.join('\n')}`,
    )
    rmSync(root, { recursive: true })
  }
  t.comment(`${rounds} rounds: ${JSON.stringify(endings)}`)
})
