import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { servedBy } from '../../native/server/server.js'
import { type Clock, pause, systemClock } from '../../src/actor/clock.js'
import type { Reply, Request } from '../../src/http/exchange.js'
import { frameOf } from '../../src/http/frame.js'
import { serve } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'
import { fc } from '../property.js'
import { HandClock } from './hand-clock.js'

const skip = servedBy === 'twin' && 'the addon was not built: no answer stands'

const size = 6_000_000
const middle = [1000, 3_000_000] as const
const partMax = 2 ** 20
const body = Buffer.from(Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8)) & 255))

/** A scene in which answers stand: what the handler does, and the terms, can be changed while it runs. */
class Scene {
  asked = 0
  holds = true
  here = true
  admits = true
  readonly admitted: [string, number, number][] = []
  sent = 0
  short = 0
  mayGoOn = true
  open = 0
  second = 1_000_000
  file = -1

  constructor(
    private readonly base: Clock = systemClock,
    private readonly wholeBytes = 60_000,
  ) {}

  /** Answers are sent from a file from now on. */
  useFile(t: Test): void {
    const path = `${t.testdir({})}/body`
    writeFileSync(path, body)
    this.file = openSync(path, 'r')
    t.teardown(() => closeSync(this.file))
  }

  get clock(): Clock {
    const { base } = this
    return {
      now: () => this.second * 1000,
      monotonic: () => base.monotonic(),
      after: (ms, act) => base.after(ms, act),
      every: (ms, act) => base.every(ms, act),
    }
  }

  readonly handler = (request: Request, reply: Reply): void => {
    this.asked += 1
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.header('range') ?? '')
    const [start, end] = range === null ? [0, this.wholeBytes] : [Number(range[1]), Number(range[2]) + 1]
    if (end > size) {
      reply.end({ status: 416, block: 'X-Path: none' })
      return
    }
    const isHead = request.method === 'HEAD'
    const frame = frameOf(range === null ? 200 : 206, 'X-Request-Id: ', `\r\nX-Path: ${request.path}`)
    const place = range === null ? '' : `\r\nContent-Range: bytes ${start}-${end - 1}/${size}`
    const own = `\r\nX-Who: ${request.header('user-agent') ?? ''}`
    const head = { status: 200, frame, id: 'x'.repeat(22), lines: place + own }
    if (!isHead || range === null) this.#offer(reply, { ...head, lines: own }, range !== null, isHead)
    if (isHead) reply.endEmpty(head, end - start)
    else void reply.stream(head, [{ start, end }], contentOf())
  }

  #offer(
    reply: Reply,
    head: Parameters<NonNullable<Reply['standing']>['offer']>[0]['head'],
    isRange: boolean,
    isHead: boolean,
  ): void {
    if (reply.standing === undefined) return
    this.open += 1
    const { file, wholeBytes } = this
    const whole = { bytes: body.subarray(0, wholeBytes), isRange: false, start: 0, sizeBytes: size, file }
    // Only the middle of the content may be had without asking.
    const part = { bytes: body.subarray(...middle), isRange: true, start: middle[0], sizeBytes: size, file }
    reply.standing.offer({
      head,
      contentLength: wholeBytes,
      body: isHead ? undefined : isRange ? part : whole,
      terms: {
        asksWho: true,
        holds: () => this.holds,
        isHere: () => this.here,
        give: (address, bytes, count) => {
          this.admitted.push([address, bytes, count])
          if (!this.admits) return undefined
          this.sent += count
          return {
            short: (unsent) => {
              this.short += unsent
            },
          }
        },
        mayGoOn: () => this.mayGoOn,
        close: () => {
          this.open -= 1
        },
      },
    })
  }

  serve(t: Test): number {
    const server = serve(this.handler, {
      ...{
        host: '127.0.0.1',
        port: 0,
        stallMs: 10_000,
        flowsMax: 1000,
        clock: this.clock,
        by: 'addon',
      },
      onThrow: (error) => t.fail(String(error)),
    })
    t.teardown(async () => {
      await server.close(0)
      if (this.open > 0) throw new Error(`${this.open} contents were not given back`)
    })
    return server.port
  }
}

function contentOf(): Content {
  return {
    sizeBytes: size,
    read: (start, end) => body.subarray(start, end),
    ready: async () => true,
    close: () => undefined,
  }
}

/** One connection that is kept, and what comes back on it. */
class Line {
  readonly socket: Socket
  #got = Buffer.alloc(0)
  #wake = (): void => undefined
  #fail = (_: Error): void => undefined

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' })
    this.socket.on('data', (piece: Buffer) => {
      this.#got = Buffer.concat([this.#got, piece])
      this.#wake()
    })
    this.socket.on('close', () => this.#fail(new Error('the connection was closed')))
    this.socket.on('error', () => undefined)
  }

  async ask(text: string, isHead = false): Promise<{ head: string; id: string; body: Buffer }> {
    this.socket.write(text)
    return this.answer(isHead)
  }

  /** The next answer; its id is cut out of its head. */
  async answer(isHead = false): Promise<{ head: string; id: string; body: Buffer }> {
    for (;;) {
      const end = this.#got.indexOf('\r\n\r\n')
      if (end >= 0) {
        const text = this.#got.toString('latin1', 0, end)
        const length = isHead ? 0 : Number(/Content-Length: (\d+)/.exec(text)?.[1] ?? 0)
        if (this.#got.length >= end + 4 + length) {
          const [, id = ''] = /X-Request-Id: (\S*)/.exec(text) ?? []
          const answer = {
            head: text.replace(id, ''),
            id,
            body: this.#got.subarray(end + 4, end + 4 + length),
          }
          this.#got = this.#got.subarray(end + 4 + length)
          return answer
        }
      }
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve
        this.#fail = reject
      })
    }
  }
}

const plain = (path: string, more = '', method = 'GET'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`

const ranged = (start: number, end: number): string =>
  plain('/r', `Range: bytes=${start}-${end}\r\nX-After: 1\r\n`)

t.test(
  'from the third time on the same request is answered without the handler, with an id of its own',
  { skip },
  async (t) => {
    const scene = new Scene()
    const line = new Line(scene.serve(t))
    const answers = []
    for (let turn = 0; turn < 6; turn += 1) answers.push(await line.ask(plain('/one')))
    t.equal(scene.asked, 2)
    t.equal(scene.sent, 4)
    for (const { head, id, body: got } of answers.slice(2)) {
      t.equal(head, answers[0]?.head)
      t.match(id, /^[A-Za-z0-9_-]{22}$/)
      t.ok(got.equals(body.subarray(0, 60_000)))
    }
    t.equal(new Set(answers.slice(2).map(({ id }) => id)).size, 4)
    t.same(scene.admitted[0], ['127.0.0.1', 60_000, 1])
    const heads = []
    for (let turn = 0; turn < 4; turn += 1) heads.push(await line.ask(plain('/one', '', 'HEAD'), true))
    t.equal(scene.asked, 4, 'another method is another request')
    t.equal(heads[3]?.head, heads[0]?.head)
    line.socket.destroy()
  },
)

t.test('whatever differs in a byte is another request', { skip }, async (t) => {
  const scene = new Scene()
  const line = new Line(scene.serve(t))
  for (let turn = 0; turn < 4; turn += 1) await line.ask(plain('/one', 'User-Agent: a\r\n'))
  const before = scene.asked
  for (const other of [
    plain('/one', 'User-Agent: b\r\n'),
    plain('/two', 'User-Agent: a\r\n'),
    plain('/one?q', 'User-Agent: a\r\n'),
    plain('/one', 'User-Agent: a\r\nX-More: 1\r\n'),
    plain('/one', 'User-Agent:  a\r\n'),
    'GET /one HTTP/1.1\r\nHost: b\r\nUser-Agent: a\r\n\r\n',
  ]) {
    const asked = scene.asked
    const { head } = await line.ask(other)
    t.equal(scene.asked, asked + 1, JSON.stringify(other))
    t.match(head, other.includes('User-Agent: b') ? /X-Who: b/ : /X-Who: a/)
  }
  await line.ask(plain('/one', 'USER-agent: a\r\n'))
  t.equal(scene.asked, before + 6, 'but names of headers have no case')
  line.socket.destroy()
})

for (const from of ['memory', 'a file']) {
  t.test(`every range of the same request gets its own bytes, from ${from}`, { skip }, async (t) => {
    const scene = new Scene()
    if (from === 'a file') scene.useFile(t)
    const line = new Line(scene.serve(t))
    const [first, end] = middle
    await line.ask(ranged(1, 2))
    await line.ask(ranged(3, 4))
    t.equal(scene.asked, 2)
    await fc.assert(
      fc.asyncProperty(fc.nat(end - first - 1), fc.nat(partMax - 1), async (at, more) => {
        const start = first + at
        const last = Math.min(start + more, end - 1)
        const { head, body: got } = await line.ask(ranged(start, last))
        return (
          got.equals(body.subarray(start, last + 1)) &&
          head.includes(`Content-Range: bytes ${start}-${last}/${size}\r\n`) &&
          head.includes(`Content-Length: ${last + 1 - start}`)
        )
      }),
      { numRuns: 100 },
    )
    t.equal(scene.asked, 2)
    line.socket.destroy()
  })
}

t.test('what does not lie in the part that stands is asked for', { skip }, async (t) => {
  const scene = new Scene()
  const line = new Line(scene.serve(t))
  await line.ask(ranged(1, 2))
  await line.ask(ranged(3, 4))
  const outside: [number, number][] = [
    [middle[0] - 1, 1500],
    [middle[1] - 1000, middle[1]],
    [1000, 1000 + partMax],
    [0, 0],
    [size, size],
  ]
  for (const [start, end] of outside) {
    const { head, body: got } = await line.ask(ranged(start, end))
    if (end < size) t.ok(got.equals(body.subarray(start, end + 1)))
    else t.match(head, / 416 /)
  }
  t.equal(scene.asked, 2 + outside.length)
  for (const odd of [
    'bytes=1000-',
    'bytes=-5',
    'bytes=1001-1000',
    'bytes=1000-1001,5-6',
    'bytes=1000-9999999999999999',
  ]) {
    const asked = scene.asked
    await line.ask(plain('/r', `Range: ${odd}\r\nX-After: 1\r\n`))
    t.equal(scene.asked, asked + 1, odd)
  }
  await line.ask(plain('/r', 'Range: bytes=1000-1001\r\nRange: bytes=1000-1001\r\nX-After: 1\r\n'))
  line.socket.destroy()
})

t.test(
  'an answer that no longer holds, is not in memory, or is not granted, is the business of the handler',
  { skip },
  async (t) => {
    const scene = new Scene()
    const line = new Line(scene.serve(t))
    for (let turn = 0; turn < 3; turn += 1) await line.ask(plain('/one'))
    t.equal(scene.asked, 2)
    for (const word of ['holds', 'here', 'admits'] as const) {
      scene[word] = false
      const { asked, sent } = scene
      await line.ask(plain('/one'))
      t.equal(scene.asked, asked + 1, word)
      t.equal(scene.sent, sent)
      scene[word] = true
      await line.ask(plain('/one'))
      t.equal(scene.asked, asked + 1)
    }
    scene.second += 1
    const { asked } = scene
    await line.ask(plain('/one'))
    t.equal(scene.asked, asked + 1, 'another second')
    t.equal(scene.open, 0)
    line.socket.destroy()
  },
)

t.test(
  'requests of one client in one turn are granted together, and answered in their order',
  { skip },
  async (t) => {
    const scene = new Scene()
    const port = scene.serve(t)
    const line = new Line(port)
    for (let turn = 0; turn < 3; turn += 1) await line.ask(plain('/one'))
    scene.admitted.length = 0
    line.socket.write(
      plain('/one') + plain('/two') + plain('/one') + plain('/one', '', 'HEAD') + plain('/one'),
    )
    for (const [path, isHead] of [['/one'], ['/two'], ['/one'], ['/one', true], ['/one']] as const) {
      const { head, body: got } = await line.answer(isHead ?? false)
      t.ok(head.includes(`X-Path: ${path}\r\n`))
      t.equal(got.length, isHead === true ? 0 : 60_000)
    }
    const lines = Array.from({ length: 20 }, () => new Line(port))
    await Promise.all(lines.map((one) => one.ask(plain('/one'))))
    const granted = scene.admitted.reduce((sum, [, , count]) => sum + count, 0)
    t.equal(granted, 23)
    for (const one of [...lines, line]) one.socket.destroy()
  },
)

t.test(
  'a slow client keeps what it takes, and gives it back when it has it all, leaves, or stalls',
  { skip },
  async (t) => {
    const clock = new HandClock()
    const scene = new Scene(clock)
    const port = scene.serve(t)
    const first = new Line(port)
    for (let turn = 0; turn < 3; turn += 1) await first.ask(plain('/one'))
    t.equal(scene.open, 1)
    // So many answers wait on one connection that its socket is full; nobody reads.
    const slow = Array.from({ length: 3 }, () => new Line(port))
    for (const { socket } of slow) {
      await once(socket, 'connect')
      socket.pause()
      socket.write(plain('/one').repeat(200))
    }
    while (scene.sent < 60) await pause(5)
    await pause(100)
    scene.second += 1
    await first.ask(plain('/two'))
    t.equal(scene.open, 1, 'forgotten, and still taken')
    slow[0]?.socket.resume()
    slow[1]?.socket.destroy()
    const left = slow[2]!
    for (let turn = 0; turn < 200; turn += 1) t.equal((await slow[0]!.answer()).body.length, 60_000)
    while (scene.open > 0) {
      scene.second += 1
      clock.turn(3000)
      await pause(20)
    }
    left.socket.resume()
    if (!left.socket.closed) await once(left.socket, 'close')
    for (const { socket } of [first, ...slow]) socket.destroy()
  },
)

for (const from of ['memory', 'a file']) {
  t.test(`what a client does not get of a large answer is told, from ${from}`, { skip }, async (t) => {
    const clock = new HandClock()
    const scene = new Scene(clock, 5_000_000)
    if (from === 'a file') scene.useFile(t)
    const port = scene.serve(t)
    const first = new Line(port)
    for (let turn = 0; turn < 3; turn += 1) {
      t.ok((await first.ask(plain('/one'))).body.equals(body.subarray(0, 5_000_000)))
    }
    t.equal(scene.short, 0)
    const lazy = async (): Promise<Line> => {
      const line = new Line(port)
      await once(line.socket, 'connect')
      line.socket.pause()
      const { sent } = scene
      line.socket.write(plain('/one'))
      while (scene.sent === sent) await pause(5)
      return line
    }
    const told = async (above: number, stepMs = 1): Promise<void> => {
      while (scene.short <= above) {
        clock.turn(stepMs)
        await pause(5)
      }
    }
    const leaver = await lazy()
    leaver.socket.destroy()
    await told(0)
    t.ok(scene.short < 5_000_000, 'some of it went out')
    let before = scene.short
    await lazy()
    await told(before, 3000)
    t.pass('who takes nothing is sent away')
    before = scene.short
    const slow = await lazy()
    let got = 0
    slow.socket.on('data', (piece: Buffer) => {
      got += piece.length
      slow.socket.pause()
      setTimeout(() => slow.socket.resume(), 15)
    })
    slow.socket.resume()
    while (got < 5_000_000) await pause(20)
    t.equal(scene.short, before, 'who is only slow gets it all')
    const cut = await lazy()
    scene.mayGoOn = false
    await told(before)
    cut.socket.resume()
    if (!cut.socket.closed) await once(cut.socket, 'close')
    first.socket.destroy()
    slow.socket.destroy()
  })
}

t.test('nothing is left of thousands of different requests', { skip }, async (t) => {
  const scene = new Scene()
  const line = new Line(scene.serve(t))
  for (let at = 0; at < 1500; at += 1) {
    const text = plain(`/${at}`, '', 'HEAD')
    for (let turn = 0; turn < 3; turn += 1) {
      const { head } = await line.ask(text, true)
      if (!head.includes(`X-Path: /${at}\r\n`)) t.fail(`the answer to another request: ${head}`)
    }
  }
  t.ok(scene.open <= 1024, `${scene.open} stand`)
  line.socket.destroy()
})
