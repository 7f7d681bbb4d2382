import { once } from 'node:events'
import { closeSync, openSync, readSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import type { Sent } from '../../src/http/exchange.js'
import type { Server } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { HandClock } from './hand-clock.js'
import { connect, origin, serve } from './transport.js'
import { ways } from './ways.js'

const folder = scratch('failing')

/** What one request met. */
interface Met {
  sent?: Sent | undefined
  closed: number
  readonly thrown: unknown[]
}

/** Serves content of `/bad` as it is given, and small sound content everywhere else. */
async function serving(
  t: Test,
  by: (typeof ways)[number],
  sizeBytes: number,
  content: () => Omit<Content, 'close' | 'sizeBytes'> & { close?: () => void },
): Promise<{ server: Server; met: Met; clock: HandClock }> {
  const clock = new HandClock()
  const met: Met = { closed: 0, thrown: [] }
  const server = serve(
    (request, reply) => {
      if (request.path !== '/bad') {
        reply.end({ status: 200, block: 'X-Sound: yes' }, 'sound')
        return
      }
      const { read, ready, close } = content()
      const given: Content = {
        sizeBytes,
        read,
        ready,
        close: () => {
          met.closed += 1
          close?.()
        },
      }
      void (async () => {
        met.sent = await reply.stream(
          { status: 200, block: 'X-Bad: yes' },
          [{ start: 0, end: sizeBytes }],
          given,
        )
      })()
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 10_000,
      requestsMax: 10,
      clock,
      by,
      onThrow: (error) => met.thrown.push(error),
    },
  )
  t.teardown(() => server.close(0))
  await server.listening
  return { server, met, clock }
}

/** Asks for /bad, reading only once `read` resolves; how many bytes came before the end. */
async function statusOf(port: number, read: Promise<unknown> = Promise.resolve()): Promise<number> {
  const socket = connect(port)
  let bytes = 0
  socket.on('error', () => undefined)
  socket.pause()
  socket.write('GET /bad HTTP/1.1\r\nHost: a\r\n\r\n')
  await read
  socket.on('data', (piece: Buffer) => {
    bytes += piece.length
  })
  socket.resume()
  if (!socket.closed) await once(socket, 'close')
  return bytes
}

async function isSound(port: number): Promise<boolean> {
  return (await (await fetch(`${origin(port)}/good`)).text()) === 'sound'
}

type Given = () => Omit<Content, 'close' | 'sizeBytes'> & { close?: () => void }

/** A file as it is read beside the fallback: where one of them was not built, none was. */
function plain(t: Test, path: string): Given {
  const file = openFallback(path)
  if (file === undefined) throw new Error('it was just written')
  t.teardown(() => file.close())
  return () => ({
    read: (start, end) => file.view(start, end),
    ready: (start, end) => file.fetch(start, end),
  })
}

/** A file whose bytes are believed to be in memory for as long as the test runs. */
function mapped(t: Test, path: string): Given {
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 10, believeMs: 1000 }, new HandClock())
  t.teardown(() => files.close())
  return () => {
    const content = files.open(path)
    if (content === undefined) throw new Error('it was just written')
    return {
      read: (start, end) => content.read(start, end),
      ready: (start, end) => content.ready(start, end),
      close: () => content.close(),
    }
  }
}

const large = 8_000_000
const bytes = Buffer.alloc(large, 'x')
const fails = (): never => {
  throw new Error('the disk failed')
}

/** Each gives content of so many bytes, and fails on another way into the server. */
const failures: readonly [
  string,
  number,
  () => Omit<Content, 'close' | 'sizeBytes'> & { close?: () => void },
][] = [
  ['at the first byte of a small body', 100, () => ({ read: fails, ready: async () => true })],
  ['at the first byte of a large body', large, () => ({ read: fails, ready: async () => true })],
  [
    'behind the first bytes',
    large,
    () => ({
      read: (start, end) => (start === 0 ? bytes.subarray(0, 1000) : (fails() ?? end)),
      ready: async () => true,
    }),
  ],
  ['when it is waited for', large, () => ({ read: () => undefined, ready: async () => fails() })],
  ['when it is asked to wait', large, () => ({ read: () => undefined, ready: fails })],
  [
    'after it was waited for',
    large,
    () => {
      let waited = false
      return {
        read: () => (waited ? fails() : undefined),
        ready: async () => {
          waited = true
          return true
        },
      }
    },
  ],
  ['by giving nothing', large, () => ({ read: () => bytes.subarray(0, 0), ready: async () => true })],
  ['by never giving what it promised', large, () => ({ read: () => undefined, ready: async () => true })],
]

for (const by of ways) {
  for (const [name, sizeBytes, content] of failures) {
    t.test(`${by}: content that fails ${name} ends one socket`, async (t) => {
      const { server, met } = await serving(t, by, sizeBytes, content)
      const got = await statusOf(server.port)
      t.ok(got < sizeBytes)
      await eventually('the answer was sent', () => met.sent)
      t.equal(met.sent?.outcome, 'broken')
      t.equal(met.closed, 1)
      t.equal(met.thrown.length, 1)
      await eventually('no request is under way', () => server.openRequests === 0)
      t.ok(await isSound(server.port))
    })
  }

  t.test(`${by}: content that fails while its client takes nothing ends one socket`, async (t) => {
    // Once by a look at all waits, once when the socket has room again.
    for (const wakes of ['clock', 'client']) {
      let broken = false
      const read = (start: number, end: number): Uint8Array => (broken ? fails() : bytes.subarray(start, end))
      const { server, met, clock } = await serving(t, by, large, () => ({ read, ready: async () => true }))
      let go: (() => void) | undefined
      const reading = statusOf(server.port, new Promise<void>((resolve) => (go = resolve)))
      await eventually('one request is under way', () => server.openRequests === 1)
      broken = true
      if (wakes === 'client') go?.()
      else clock.turn(1)
      await eventually('the answer was sent', () => met.sent)
      t.equal(met.sent?.outcome, 'broken')
      go?.()
      t.ok((await reading) < large)
      t.equal(met.closed, 1)
      t.ok(await isSound(server.port))
    }
  })

  t.test(`${by}: a close that throws is reported, and has no other effect`, async (t) => {
    const { server, met } = await serving(t, by, large, () => ({
      read: (start, end) => bytes.subarray(start, end),
      ready: async () => true,
      close: fails,
    }))
    const answer = await (await fetch(`${origin(server.port)}/bad`)).arrayBuffer()
    t.equal(answer.byteLength, large)
    await eventually('the bug was thrown', () => met.thrown.length === 1)
    t.ok(await isSound(server.port))
  })

  t.test(`${by}: a closed descriptor under a body ends one socket`, async (t) => {
    const path = join(folder, `closed-${by}`)
    writeFileSync(path, bytes)
    const buffer = Buffer.alloc(256 * 1024)
    const file = openSync(path, 'r')
    const { server, met } = await serving(t, by, large, () => ({
      read(start, end) {
        if (start > 1_000_000) closeSync(file)
        return buffer.subarray(0, readSync(file, buffer, 0, Math.min(end - start, buffer.length), start))
      },
      ready: async () => true,
    }))
    await statusOf(server.port)
    await eventually('the answer was sent', () => met.sent)
    t.equal(met.sent?.outcome, 'broken')
    t.match(String(met.thrown[0]), /EBADF/)
    t.ok(await isSound(server.port))
  })

  // The kernel copies these or this side does, in one call with the head or behind it.
  for (const sizeBytes of [8000, 60_000, large]) {
    t.test(
      `${by}: a file of ${sizeBytes} bytes that shrinks under its mapping ends one socket`,
      async (t) => {
        const path = join(folder, `shrinks-${by}-${sizeBytes}`)
        writeFileSync(path, bytes.subarray(0, sizeBytes))
        const content = by === 'fallback' ? plain(t, path) : mapped(t, path)
        const { server, met } = await serving(t, by, sizeBytes, content)
        const whole = await (await fetch(`${origin(server.port)}/bad`)).arrayBuffer()
        t.equal(whole.byteLength, sizeBytes)
        truncateSync(path, 0)
        delete met.sent
        // Its bytes are believed to be in memory still.
        await statusOf(server.port)
        await eventually('the answer was sent', () => met.sent)
        t.match(met, { sent: { outcome: 'broken' } })
        t.ok(await isSound(server.port))
      },
    )
  }
}
