import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { paced, SenderPace } from '../../src/http/sender-pace.js'
import { HandClock } from '../names/hand-clock.js'
import { fc } from '../property.js'

const options = { stallMs: 1000, bytesPerSecondMin: 1000 }

t.test('a silent sender ends a transfer, a slow reader does not', async (t) => {
  const clock = new HandClock()
  const pace = new SenderPace(options, clock)
  await clock.turn(5000)
  t.equal(pace.leftMs, 1000, 'nobody waits')
  pace.wait()
  await clock.turn(999)
  pace.wait()
  t.equal(pace.leftMs, 1)
  pace.came(100)
  await clock.turn(5000)
  t.equal(pace.leftMs, 101)
})

t.test('a very slow sender ends hardly later than a silent one, a fast enough one never', async (t) => {
  const lasts = async (bytes: number, everyMs: number): Promise<number> => {
    const clock = new HandClock()
    const pace = new SenderPace(options, clock)
    for (let pieces = 0; pieces < 10_000; pieces += 1) {
      pace.wait()
      await clock.turn(everyMs)
      if (pace.leftMs <= 0) return pieces
      pace.came(bytes)
    }
    return Number.POSITIVE_INFINITY
  }
  t.equal(await lasts(1, 100), 10)
  t.equal(await lasts(50, 100), 18)
  t.equal(await lasts(100, 100), Number.POSITIVE_INFINITY)
})

t.test('no sender takes longer than its bytes and one stall', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(5000), fc.nat(400)), { maxLength: 200 }), async (pieces) => {
      let ms = 0
      const pace = new SenderPace(options, { ...new HandClock(), monotonic: () => ms } as never)
      let bytes = 0
      for (const [size, afterMs] of pieces) {
        pace.wait()
        ms += afterMs
        if (pace.leftMs <= 0) break
        pace.came(size)
        bytes += size
        t.ok(ms <= options.stallMs + (bytes * 1000) / options.bytesPerSecondMin)
        t.ok(pace.leftMs <= options.stallMs)
      }
    }),
  )
})

t.test('a body that is too slow or breaks off ends with a refusal, and its sender is stopped', async (t) => {
  const clock = new HandClock()
  let ended = 0
  const end = (): void => {
    ended += 1
  }
  const read = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
    let received = ''
    for await (const piece of paced(body, 'it', options, clock, end))
      received += isRefusal(piece) ? piece.refused : Buffer.from(piece).toString()
    return received
  }
  async function* dripping(): AsyncGenerator<Uint8Array> {
    for (;;) {
      await new Promise<void>((resolve) => clock.after(100, resolve))
      yield Buffer.from('x')
    }
  }
  async function* breaking(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('ab')
    throw new Error('gone')
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('ab')
    yield Buffer.from('c')
  }
  const reading = read(dripping())
  await clock.turn(2000)
  t.match(await reading, /^x{9,12}late$/)
  t.equal(await read(breaking()), 'abupstream')
  t.equal(ended, 2)
  t.equal(await read(whole()), 'abc')
  t.equal(ended, 2)
  t.equal(clock.waiting, 0, 'no timer is left')
})
