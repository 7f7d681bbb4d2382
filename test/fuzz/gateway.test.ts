/**
 * The whole program under valid requests of every kind, from 32 connections that pipeline, leave in the middle, read slowly and
 * send in pieces; each answer is compared with what its request must get. It ends after so many answers; FUZZ_SECONDS says how
 * long instead (a quarter of it for the fallback).
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { clientOf, jsonOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { type Running, run, sluice, twoEdges } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { type Expected, expectedOf, type Kept, linesOf, type Shown, type Wish } from './expected.js'
import { Ended, faultOf, Pipeline, type Sent } from './pipeline.js'

const seconds = Number(process.env.FUZZ_SECONDS ?? 0)
/** Each kind of answer comes some dozens of times. */
const answersMin = 5000
const connections = 32
const roots = ['gw.example', 'other.example']
const manifestType = 'application/x.arweave-manifest+json'

t.setTimeout(1_200_000 + seconds * 2000)

/** Chance of one connection: quick, and the same row for the same seed. */
class Dice {
  #state = Math.floor(random() * 2 ** 32)

  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }

  one<T>(all: readonly T[]): T {
    return all[this.below(all.length)] as T
  }

  /** True once in so many times. */
  in(times: number): boolean {
    return this.below(times) === 0
  }
}

/** A chunk of a transaction, by one of its weave offsets. */
interface Chunk {
  readonly offset: number
  readonly id: string
  readonly body: Buffer
}

interface Site {
  readonly kept: readonly Kept[]
  readonly manifest: Kept
  /** Path below the manifest to its content. */
  readonly paths: ReadonlyMap<string, Kept>
  /** What paths show that the manifest does not have. */
  readonly fallback: Kept
  readonly bare: Kept
  readonly names: ReadonlyMap<string, Kept>
  readonly chunks: readonly Chunk[]
}

/** RFC 4648 section 6, small letters, without padding. */
function base32(id: string): string {
  const bits = [...Buffer.from(id, 'base64url')].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const letters = 'abcdefghijklmnopqrstuvwxyz234567'
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => letters[Number.parseInt(five.padEnd(5, '0'), 2)])
    .join('')
}

const sizes = [
  1, 2, 100, 668, 1000, 1024, 4096, 6000, 6001, 16_383, 16_384, 16_385, 20_000, 40_000, 65_536, 70_000,
  131_071, 131_072, 131_073, 300_000, 1_048_576, 1_048_577, 2_097_153, 3_000_001,
]
const types = [
  'image/png',
  'text/plain',
  'text/css',
  'application/json',
  'video/mp4',
  'application/octet-stream',
]

/** Posts the content to the chain, waits until it is in the cache, and gives it names. */
async function seed(running: Running, dataPath: string): Promise<Site> {
  const { gateway = '', devnet: node = '' } = running.urls
  const client = clientOf(node)
  const wallet = knownWallet()
  await fetch(`${node}/mint/${await client.wallets.jwkToAddress(wallet)}/1000000000000000000`)
  const ranges = new Map<string, { at: number; end: number }[]>()
  const post = async (body: Buffer, type: string): Promise<Kept> => {
    const transaction = await client.createTransaction({ data: body }, wallet)
    transaction.addTag('Content-Type', type)
    await client.transactions.sign(transaction, wallet)
    const uploader = await client.transactions.getUploader(transaction)
    while (!uploader.isComplete) await uploader.uploadChunk()
    const chunks = transaction.chunks?.chunks ?? []
    ranges.set(
      transaction.id,
      chunks.map(({ minByteRange, maxByteRange }) => ({ at: minByteRange, end: maxByteRange })),
    )
    return { id: transaction.id, body, type }
  }
  const kept: Kept[] = []
  for (const [index, size] of sizes.entries()) {
    kept.push(await post(randomBytes(size), types[index % types.length] ?? ''))
  }
  const [fallback, first, second] = kept as [Kept, Kept, Kept]
  const paths = new Map([
    ['', first],
    ['index.css', first],
    ['a/b.png', second],
    ['a b', kept[9] as Kept],
    ['large.mp4', kept[19] as Kept],
  ])
  const entries = [...paths].filter(([path]) => path !== '').map(([path, { id }]) => [path, { id }])
  const base = { manifest: 'arweave/paths', index: { path: 'index.css' }, paths: Object.fromEntries(entries) }
  const write = (more: object): Buffer => Buffer.from(JSON.stringify({ ...base, ...more }))
  const manifest = await post(write({ version: '0.2.0', fallback: { id: fallback.id } }), manifestType)
  const bare = await post(write({ version: '0.1.0' }), manifestType)
  await fetch(`${node}/mine/2`)
  const all = [...kept, manifest, bare]
  const cached = ({ id, body }: Kept): Promise<boolean> =>
    eventually('the content is served from the cache', async () => {
      const answer = await fetch(`${gateway}/raw/${id}`)
      const isSame = Buffer.from(await answer.arrayBuffer()).equals(body)
      return isSame && answer.headers.get('x-cache') === 'HIT' && answer.headers.has('etag')
    })
  await Promise.all(all.map(cached))
  const names = new Map([
    ['png', kept[0] as Kept],
    ['css', kept[12] as Kept],
    ['under_css', kept[16] as Kept],
    ['site', manifest],
  ])
  for (const [name, { id }] of names) await sluice(['names', 'set', name, id], { DATA_PATH: dataPath })
  for (const [name, { id }] of names) {
    await eventually('the name means the content', async () => {
      const answer = await fetch(`${gateway}/gateway/resolver/${name}`)
      await answer.arrayBuffer()
      return answer.headers.get('x-ns-resolved-id') === id
    })
  }
  const chunks: Chunk[] = []
  for (const one of kept.slice(-8)) {
    const { offset, size } = await jsonOf<{ offset: string; size: string }>(`${node}/tx/${one.id}/offset`)
    const start = Number(offset) - Number(size) + 1
    for (const { at, end } of ranges.get(one.id) ?? []) {
      const body = one.body.subarray(at, end)
      if (body.length > 0) chunks.push({ offset: start + at, id: one.id, body })
    }
  }
  for (const { offset } of chunks)
    await eventually(
      'the chunk is served',
      async () => (await fetch(`${gateway}/chunk/${offset}`)).status === 200,
    )
  return { kept, manifest, paths, fallback, bare, names, chunks }
}

/** What is asked of content. */
function wishOf(dice: Dice, size: number): Wish {
  const method = dice.in(7) ? 'HEAD' : 'GET'
  const wish: { -readonly [Key in keyof Wish]: Wish[Key] } = { method, ranges: [] }
  const draw = dice.below(100)
  const first = dice.below(size)
  const last = first + dice.below(Math.min(size - first, 1 << (1 + dice.below(22))))
  if (draw < 30) wish.ranges = [[first, last]]
  else if (draw < 34) wish.ranges = [[first, undefined]]
  else if (draw < 38) wish.ranges = [[undefined, 1 + dice.below(2 * size)]]
  else if (draw < 41) wish.ranges = [[first, size + dice.below(2 ** 40)]]
  else if (draw < 44) wish.ranges = [[size + dice.below(1000), undefined]]
  else if (draw < 46) wish.ranges = [[size + dice.below(1000), 2 ** 53 + dice.below(2 ** 20)]]
  else if (draw < 52) {
    const middle = Math.floor(size / 2)
    wish.ranges = [
      [middle, middle + dice.below(100)],
      [0, dice.below(Math.max(1, Math.min(middle, 5000)))],
    ]
  } else if (draw < 54) wish.rangeText = 'pages=1-2'
  else if (draw < 55) wish.rangeText = 'nonsense'
  const condition = dice.below(100)
  if (condition < 6) wish.noneMatch = dice.one(['same', 'other', 'any', 'weak'] as const)
  else if (condition < 10) wish.match = dice.one(['same', 'other', 'any'] as const)
  else if (condition < 16 && draw < 55) wish.ifRange = dice.one(['same', 'other'] as const)
  return wish
}

interface Plain {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly lines: readonly string[]
  readonly expected: Expected
}

/** What everybody asks again and again, without a word of their own; with all bounds of ranges. */
function hotOf(site: Site, dice: Dice): Shown[] {
  const small = site.kept.filter(({ body }) => body.length <= 70_000)
  return Array.from({ length: 8 }, () => ({ kept: dice.one(small) }))
}

/** Requests of every kind, by chance. */
class Requests {
  #count = 0

  constructor(
    private readonly site: Site,
    private readonly dice: Dice,
    private readonly name: string,
    private readonly hot: readonly Shown[],
  ) {}

  /** The same few addresses as every other connection, and the same words but for the bounds of a range. */
  again(closes: boolean): Sent {
    const { dice } = this
    const shown = dice.one(this.hot)
    const size = shown.kept.body.length
    const first = dice.below(size)
    const isPart = dice.in(3)
    const method = dice.in(5) ? 'HEAD' : 'GET'
    const wish: Wish = { method, ranges: isPart ? [[first, first + dice.below(size - first)]] : [] }
    const lines = [`Host: ${roots[0]}`, ...linesOf(shown, wish), ...(closes ? ['Connection: close'] : [])]
    const text = `${method} /raw/${shown.kept.id} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
    return {
      text,
      isHead: method === 'HEAD',
      requestId: undefined,
      closes,
      expected: expectedOf(shown, wish),
    }
  }

  next(closes: boolean): Sent {
    const { dice } = this
    const { method, host, path, lines, expected } = this.#plain()
    this.#count += 1
    // Half of them say nothing of themselves: what others ask as well, byte for byte, in the same second.
    const isBare = dice.in(2)
    const requestId = !isBare && dice.in(2) ? `${this.name}.${this.#count}` : undefined
    const more = [
      ...(requestId === undefined ? [] : [`X-Request-Id: ${requestId}`]),
      ...(!isBare && dice.in(3) ? [`User-Agent: fuzz/${dice.below(50)}`] : []),
      ...(!isBare && dice.in(5) ? [`X-Padding: ${'x'.repeat(dice.below(3000))}`] : []),
      ...(closes ? ['Connection: close'] : []),
    ]
    const all = dice.in(2) ? [...lines, ...more] : [...more, ...lines]
    const isWhole = !isBare && dice.in(40) && method !== 'OPTIONS'
    const head = isWhole
      ? [`${method} http://${host}${path} HTTP/1.1`, 'Host: elsewhere.example', ...all]
      : [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...all]
    return { text: `${head.join('\r\n')}\r\n\r\n`, isHead: method === 'HEAD', requestId, closes, expected }
  }

  #plain(): Plain {
    const draw = this.dice.below(100)
    if (draw < 35) return this.#raw()
    if (draw < 55) return this.#sandboxed()
    if (draw < 70) return this.#named()
    if (draw < 78) return this.#belowManifest()
    if (draw < 82) return this.#redirected()
    if (draw < 88) return this.#chunk()
    return this.#other()
  }

  /** Small content more often: large bodies take all the time. */
  #kept(): Kept {
    const { kept } = this.site
    return kept[Math.min(this.dice.below(kept.length), this.dice.below(kept.length))] as Kept
  }

  #shown(host: string, path: string, shown: Shown): Plain {
    const wish = wishOf(this.dice, shown.kept.body.length)
    return { method: wish.method, host, path, lines: linesOf(shown, wish), expected: expectedOf(shown, wish) }
  }

  #raw(): Plain {
    const kept = this.dice.in(10) ? this.site.manifest : this.#kept()
    const host = this.dice.one(['127.0.0.1', 'unknown.example:8080', ...roots])
    const slash = this.dice.in(4) ? '/' : ''
    return this.#shown(host, `${this.dice.one(['/raw/', '/RAW/'])}${kept.id}${slash}`, { kept })
  }

  #sandboxed(): Plain {
    const kept = this.#kept()
    const rest = this.dice.one(['', '', '/', '/any/path.html', '?a=b'])
    return this.#shown(`${base32(kept.id)}.${this.dice.one(roots)}`, `/${kept.id}${rest}`, { kept })
  }

  #named(): Plain {
    const [text, kept] = this.dice.one([...this.site.names])
    const host = `${text}.${this.dice.one(roots)}`
    const name = { text, resolvedId: kept.id }
    if (kept !== this.site.manifest)
      return this.#shown(host, this.dice.one(['/', '/x', '/x?y']), { kept, name })
    const [path, target] = this.dice.one([...this.site.paths])
    return this.#shown(host, `/${encodeURI(path)}`, { kept: target, name })
  }

  #belowManifest(): Plain {
    const { manifest, bare, fallback, paths } = this.site
    const under = this.dice.in(3) ? bare : manifest
    const host = `${base32(under.id)}.${this.dice.one(roots)}`
    const draw = this.dice.below(10)
    if (draw === 0) {
      const headers = { location: `/${under.id}/`, 'x-gateway-data-id': 'absent' } as const
      return { method: 'GET', host, path: `/${under.id}`, lines: [], expected: { status: 301, headers } }
    }
    if (draw === 1) {
      const path = `/${under.id}/nowhere/${this.dice.below(100)}`
      if (under === manifest) return this.#shown(host, path, { kept: fallback })
      const headers = { 'x-gateway-data-id': 'absent', etag: 'absent' } as const
      return { method: 'GET', host, path, lines: [], expected: { status: 404, headers } }
    }
    const [path, target] = this.dice.one([...paths])
    return this.#shown(host, `/${under.id}/${encodeURI(path)}`, { kept: target })
  }

  #redirected(): Plain {
    const { id } = this.#kept()
    const root = this.dice.one(roots)
    const query = this.dice.one(['', 'a=b'])
    const path = `/${id}/x${query === '' ? '' : `?${query}`}`
    const location = `http://${base32(id)}.${root}/${id}/x?${query}`
    const headers = { location, 'x-gateway-data-id': 'absent', etag: 'absent' }
    return { method: 'GET', host: root, path, lines: [], expected: { status: 302, headers } }
  }

  #chunk(): Plain {
    const { offset, id, body } = this.dice.one(this.site.chunks)
    const at = offset + this.dice.below(body.length)
    const headers = {
      'x-chain-chunk-tx-id': id,
      'x-chain-chunk-read-offset': String(at - offset),
      'x-chain-chunk-start-offset': String(offset),
      'x-gateway-data-id': 'absent',
    }
    const common = { method: 'GET', host: '127.0.0.1', lines: [] }
    if (this.dice.in(2))
      return { ...common, path: `/chunk/${at}/data`, expected: { status: 200, headers, body } }
    const start = Buffer.from(`{"chunk":"${body.toString('base64url')}","data_path":"`)
    return { ...common, path: `/chunk/${at}`, expected: { status: 200, headers, start } }
  }

  #other(): Plain {
    const kept = this.#kept()
    const plain = { method: 'GET', host: '127.0.0.1', lines: [] }
    switch (this.dice.below(7)) {
      case 0: {
        const headers = { allow: /^GET, HEAD/, etag: 'absent' } as const
        return { ...plain, method: 'DELETE', path: `/raw/${kept.id}`, expected: { status: 405, headers } }
      }
      case 1: {
        const headers = { 'access-control-allow-origin': '*', etag: 'absent' } as const
        const bodiless = { length: undefined }
        return {
          ...plain,
          method: 'OPTIONS',
          path: `/raw/${kept.id}`,
          expected: { status: 204, headers, bodiless },
        }
      }
      case 2: {
        const [text, { id }] = this.dice.one([...this.site.names])
        const headers = { 'x-ns-resolved-id': id, 'x-ns-name': text, etag: 'absent' } as const
        return { ...plain, path: `/gateway/resolver/${text}`, expected: { status: 200, headers } }
      }
      case 3: {
        const headers = {
          'x-gateway-data-id': 'absent',
          'content-type': 'text/plain; charset=utf-8',
        } as const
        const path = `/nothing/${this.dice.below(1000)}`
        return { ...plain, path, expected: { status: 404, headers, body: Buffer.from('Not found') } }
      }
      case 4: {
        const headers = { 'content-type': /^application\/json/, 'x-gateway-data-id': 'absent' } as const
        return {
          ...plain,
          path: '/gateway/info',
          expected: { status: 200, headers, start: Buffer.from('{') },
        }
      }
      case 5: {
        const headers = { 'x-gateway-data-id': 'absent', 'x-ns-resolved-id': 'absent' } as const
        const expected = { status: 400, headers, body: Buffer.from(`Invalid ID: ${'_'.repeat(43)}`) }
        return { ...plain, path: `/raw/${'_'.repeat(43)}`, expected }
      }
      default: {
        const digest = expectedOf({ kept }, { method: 'GET', ranges: [] }).headers.etag as string
        return this.#shown('127.0.0.1', `/gateway/digest/${digest.replaceAll('"', '')}`, { kept })
      }
    }
  }
}

/** When all connections together have asked enough. */
interface Budget {
  readonly endMs: number
  readonly answersMin: number
}

/** What all connections together met. */
interface Tally {
  answers: number
  left: number
  readonly statuses: Map<number, number>
  readonly faults: string[]
}

/** One connection after another, until there were enough. */
async function client(
  port: number,
  requests: Requests,
  dice: Dice,
  name: string,
  budget: Budget,
  tally: Tally,
): Promise<void> {
  const isOver = () => performance.now() > budget.endMs || tally.answers >= budget.answersMin
  while (!isOver() && tally.faults.length < 10) {
    const pipeline = new Pipeline(port)
    await pipeline.open()
    try {
      let goesOn = true
      for (let batch = 1 + dice.below(12); goesOn && batch > 0; batch -= 1) {
        goesOn = await exchange(pipeline, requests, dice, tally)
      }
    } catch (error) {
      tally.faults.push(`${name}: ${(error as Error).stack ?? error}`)
    }
    pipeline.socket.destroy()
  }
}

/** Some requests at once and their answers. False: the connection is over. */
async function exchange(pipeline: Pipeline, requests: Requests, dice: Dice, tally: Tally): Promise<boolean> {
  const closes = dice.in(12)
  const isHot = dice.in(2)
  const count = 1 + (isHot ? dice.below(64) : dice.in(3) ? dice.below(24) : dice.below(4))
  const pipelined = Array.from({ length: count }, (_, index) => {
    const isLast = closes && index === count - 1
    return isHot ? requests.again(isLast) : requests.next(isLast)
  })
  const { socket } = pipeline
  const text = pipelined.map((one) => one.text).join('')
  // Leaves in the middle: of what it sends, or of what it gets.
  if (dice.in(15)) {
    tally.left += 1
    if (dice.in(3)) {
      socket.write(text.slice(0, dice.below(text.length)))
      await pause(dice.below(4))
      return false
    }
    const enough = pipeline.received + dice.below(1 << (4 + dice.below(18)))
    socket.write(text)
    const patience = performance.now() + 50
    while (pipeline.received < enough && performance.now() < patience) await pause(1)
    if (dice.in(2)) socket.resetAndDestroy()
    return false
  }
  const ends = !closes && dice.in(20)
  await send(socket, text, dice, ends)
  const isSlow = dice.in(10)
  for (const [index, one] of pipelined.entries()) {
    if (isSlow && dice.in(2)) {
      socket.pause()
      await pause(dice.below(30))
      socket.resume()
    }
    const answer = await pipeline.answer(one.isHead).catch((error: unknown) => {
      const why = error instanceof Ended ? 'the connection ended' : String(error)
      throw new Error(`${why} instead of answer ${index + 1} of ${count}: ${one.text}`)
    })
    tally.answers += 1
    tally.statuses.set(answer.status, (tally.statuses.get(answer.status) ?? 0) + 1)
    const fault = faultOf(one, answer)
    if (fault !== undefined) {
      const heads = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
      throw new Error(`${fault}\n${one.text}${answer.status}\n${heads}`)
    }
  }
  if (pipeline.surplus > 0) throw new Error(`${pipeline.surplus} bytes behind the last answer`)
  if (!closes && !ends) return true
  await pipeline.closed()
  if (pipeline.surplus > 0) throw new Error(`${pipeline.surplus} bytes behind the last answer`)
  return false
}

/** In one write, or in pieces cut anywhere. `ends`: no more will come. */
async function send(socket: Pipeline['socket'], text: string, dice: Dice, ends: boolean): Promise<void> {
  if (dice.in(3)) {
    for (let at = 0; at < text.length; ) {
      const length = 1 + dice.below(Math.min(4000, text.length - at))
      socket.write(text.slice(at, at + length))
      at += length
      await new Promise((resolve) => setImmediate(resolve))
    }
  } else socket.write(text)
  if (ends) socket.end()
}

/** `part`: of the usual length. */
async function fuzzed(t: Test, part: number, words?: readonly string[]): Promise<void> {
  const dataPath = join(scratch('gateway'), 'data')
  const environment = {
    ...twoEdges,
    SERVICES: 'gateway',
    DEVNET_BLOCK_MS: '0',
    ARNS_ROOT_HOST: roots.join(','),
    PORT: '0',
  }
  const running = await run(t, dataPath, environment, words)
  const site = await seed(running, dataPath)
  const { gateway = '' } = running.urls
  const port = Number(new URL(gateway).port)
  const tally: Tally = { answers: 0, left: 0, statuses: new Map(), faults: [] }
  const isTimed = seconds > 0
  const budget = {
    endMs: isTimed ? performance.now() + seconds * part * 1000 : Number.POSITIVE_INFINITY,
    answersMin: isTimed ? Number.POSITIVE_INFINITY : answersMin * part,
  }
  const hot = hotOf(site, new Dice())
  await Promise.all(
    Array.from({ length: connections }, (_, index) => {
      const [dice, name] = [new Dice(), `c${index}`]
      return client(port, new Requests(site, dice, name, hot), dice, name, budget, tally)
    }),
  )
  t.comment(
    `${tally.answers} answers, ${tally.left} clients left: ${JSON.stringify(Object.fromEntries(tally.statuses))}`,
  )
  t.strictSame(tally.faults, [])
  t.ok(tally.answers > 100)
  t.ok([200, 204, 206, 301, 302, 304, 400, 404, 405, 412, 416].every((status) => tally.statuses.has(status)))
  const metrics = await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /^get_data_stream_errors_total(\{.*\})? 0$/m, 'no body ended short')
  t.same(
    running.log.filter(({ level }) => Number(level) >= 50),
    [],
    'nothing went wrong',
  )
  t.equal(await running.stop(), 0)
  t.notMatch(running.noise.join(''), /Sanitizer|runtime error/, 'no report')
}

t.test('every answer is that of its request', (t) => fuzzed(t, 1))

/** A fallback runs no native code, so that a sanitizer sees nothing of it. */
const skip =
  process.execArgv.includes('--conditions=sanitized') && 'the fallbacks have no code that a sanitizer watches'

t.test('with the fallbacks of the addons, too', { skip }, (t) => fuzzed(t, 0.25, ['--conditions=fallback']))
