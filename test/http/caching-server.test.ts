import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import { pause, systemClock } from '../../src/actor/clock.js'
import { plainLines } from '../../src/gateway/plain-lines.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { collectGarbage } from '../collect-garbage.js'
import { eventually } from '../eventually.js'
import { openFiles } from '../open-files.js'
import { scratch } from '../scratch.js'
import { connect, serve } from './transport.js'

/** What cached answers must not take from others: turns of the loop, memory, and the grace of a server that closes. */

/** Collects garbage; what is freed with it is freed in turns of their own. */
async function collect(): Promise<void> {
  for (let time = 0; time < 4; time += 1) {
    collectGarbage()
    await pause(1)
  }
}

const skip = servedBy === 'fallback' && 'the fallback has no response cache'
const asking = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'
let folders = 0

/** A server that answers with files of this size, of which it keeps one open, and has each answer cached. */
function serving(sizeBytes: number, { maxBytes = 2 ** 22, stallMs = 10_000, connectionsMax = 1024 } = {}) {
  folders += 1
  const folder = scratch(`repeating-server-${folders}`)
  for (const name of ['0', '1']) writeFileSync(`${folder}/${name}`, Buffer.alloc(sizeBytes, name))
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 1, believeMs: 60_000 }, systemClock)
  const meters = new Float64Array(new SharedArrayBuffer(800))
  const places = { whole: 0, aborted: 1, left: 2, stalled: 3, broken: 4, bytes: 5, hits: 6, cached: 7 }
  const tally = { meters, ...places, buckets: 9, bounds: [1] }
  const thrown: unknown[] = []
  const server = serve(
    (_request, reply) => {
      const file = open(0)
      void reply.stream({ status: 200, block: 'A: b' }, [{ start: 0, end: sizeBytes }], file)
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs,
      connectionsMax,
      requestsMax: 10,
      onThrow: (error) => thrown.push(error),
      responseCache: { maxBytes, plain: plainLines, onSample: () => undefined },
    },
  )
  function open(which: number, path = '/a') {
    const file = files.open(`${folder}/${which}`)
    const borrowed = file?.lend?.()
    if (file === undefined || borrowed === undefined) throw new Error('not mapped')
    server.responseCache?.put({
      variant: 'whole',
      method: 'GET',
      host: 'a',
      path,
      isStrict: false,
      tag: '',
      shown: '',
      before: 'HTTP/1.1 200 OK\r\nX-Request-Id: ',
      after: '\r\nA: b',
      fromSeconds: 0,
      untilSeconds: Number.POSITIVE_INFINITY,
      sizeBytes,
      body: borrowed,
      offset: 0,
      conditions: borrowed.conditions.map(([cell, value]) => [cell, value, value] as const),
      tally,
      price: 'none',
    })
    return file
  }
  const close = async (graceMs: number) => {
    await server.close(graceMs)
    files.close()
    if (thrown.length > 0) throw thrown[0]
  }
  const counted = {
    whole: () => meters[0] ?? 0,
    aborted: () => meters[1] ?? 0,
    stalled: () => meters[3] ?? 0,
    bytes: () => meters[5] ?? 0,
    fromCache: () => meters[7] ?? 0,
  }
  /** Descriptors of this process for the first file. */
  const descriptors = (): number => openFiles(folder).filter((path) => path === `${folder}/0`).length
  return { server, open, close, descriptors, ...counted }
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port)
  await once(socket, 'connect')
  return socket
}

t.test('however many files are opened, their answers can be offered', { skip }, async (t) => {
  const { open, close } = serving(10)
  for (let round = 0; round < 66_000; round += 1) {
    open(round % 2).close()
    if (round % 1000 === 0) await new Promise(setImmediate)
  }
  t.pass()
  await close(0)
})

t.test('a full table takes new answers, and spares what is asked for', { skip }, async (t) => {
  const { server, open, close, whole } = serving(10, { maxBytes: 2 ** 14 })
  const socket = await connected(server.port)
  const isFromCache = async (path: string): Promise<boolean> => {
    const before = whole()
    // The first one may be the handler's: that the bytes are in memory is believed for a second, and found out by it.
    for (const _try of [1, 2]) {
      const answered = once(socket, 'data')
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
      await answered
    }
    return whole() > before
  }
  open(0, '/popular').close()
  for (let at = 0; at < 500; at += 1) {
    open(0, `/${at}`).close()
    if (at % 10 === 0) t.ok(await isFromCache('/popular'))
  }
  t.ok((server.responseCache?.usage.answers ?? 0) < 100, 'it is full')
  t.ok((server.responseCache?.usage.bytes ?? 0) <= 2 ** 14, 'and within its bound')
  for (let at = 480; at < 500; at += 1) t.ok(await isFromCache(`/${at}`), `${at}`)
  socket.destroy()
  await close(0)
})

t.test('where all answers were asked for, room is made after a look at some of them', { skip }, async (t) => {
  const { server, open, close, whole } = serving(10, { maxBytes: 2 ** 18 })
  const socket = await connected(server.port)
  const isFromCache = async (path: string): Promise<boolean> => {
    const before = whole()
    const answered = once(socket, 'data')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await answered
    return whole() > before
  }
  const answers = (): number => server.responseCache?.usage.answers ?? 0
  // From then on the bytes of the file are believed to be in memory.
  while (!(await isFromCache('/a')));
  let [offered, cached] = [0, 0]
  for (let before = 0; answers() > before; offered += 1) {
    before = answers()
    open(0, `/${1000 + offered}`).close()
    if (answers() > before && (await isFromCache(`/${1000 + offered}`))) cached += 1
  }
  t.ok(cached > 500)
  t.equal(cached, offered - 1, 'the last one made another go, and all of those had been asked for')
  t.ok(await isFromCache('/a'), 'the oldest was spared')
  socket.destroy()
  await close(0)
})

t.test('a client that sends requests without end gets no more of a turn than others', { skip }, async (t) => {
  const { server, close, whole } = serving(10)
  const socket = await connected(server.port)
  socket.resume()
  const requests = 40_000
  let [most, before] = [0, 0]
  const look = (): void => {
    most = Math.max(most, whole() - before)
    before = whole()
    if (before < requests - 100) setImmediate(look)
  }
  look()
  socket.write(asking.repeat(requests))
  await eventually('most answers are whole', () => whole() >= requests - 100)
  t.ok(most <= 64, `${most} in one turn`)
  socket.destroy()
  await close(0)
})

t.test('a closing server waits for clients that take a cached answer slowly', { skip }, async (t) => {
  const { server, close, whole, aborted } = serving(250_000)
  const socket = await connected(server.port)
  let got = 0
  socket.on('data', (piece) => {
    got += piece.length
  })
  socket.write(asking)
  await eventually('a part of the answer has come', () => got > 250_000)
  const first = got
  socket.pause()
  socket.write(asking.repeat(100))
  await eventually('an answer is being sent', () => server.responseCache?.isSending === true)
  const closing = close(5000)
  const ended = new Promise((resolve) => socket.on('close', resolve))
  setTimeout(() => socket.resume(), 100)
  await ended
  await closing
  t.equal(aborted(), 0)
  t.ok(whole() > 0)
  t.ok(got > first + whole() * 250_000)
})

t.test('a large body goes on where its file is not kept open any more', { skip }, async (t) => {
  const sizeBytes = 2 ** 20
  const { server, open, close, descriptors, fromCache, aborted, bytes } = serving(sizeBytes)
  open(0).close()
  const sockets: Socket[] = []
  const bodies: Promise<Buffer>[] = []
  for (let at = 0; at < 3; at += 1) {
    const socket = await connected(server.port)
    // Nothing is read, so that the kernel's buffers are soon full.
    socket.pause()
    socket.write(asking)
    sockets.push(socket)
  }
  await eventually('three answers came from the cache', () => fromCache() === 3)
  t.equal(server.responseCache?.isSending, true)
  t.equal(bytes(), 0, 'bytes are counted at the end')
  open(1).close()
  await collect()
  t.equal(descriptors(), 1, 'its memory is kept until they have all of it')
  sockets.pop()?.destroy()
  await eventually('one answer was aborted', () => aborted() === 1)
  t.ok(bytes() < sizeBytes)
  const before = bytes()
  for (const socket of sockets) bodies.push(bodyOf(socket, sizeBytes))
  for (const body of await Promise.all(bodies)) t.ok(body.equals(Buffer.alloc(sizeBytes, '0')))
  await eventually('all files are closed', async () => {
    await collect()
    return descriptors() === 0
  })
  t.equal(bytes(), before + 2 * sizeBytes)
  t.equal(server.responseCache?.isSending, false)
  for (const socket of sockets) socket.destroy()
  await close(0)
})

t.test('few large bodies wait for slow clients; others are answered by the handler', { skip }, async (t) => {
  const { server, open, close, fromCache } = serving(2 ** 20, { connectionsMax: 32 })
  open(0).close()
  const sockets: Socket[] = []
  for (let at = 0; at < 8; at += 1) {
    const socket = await connected(server.port)
    socket.pause()
    socket.write(asking)
    sockets.push(socket)
  }
  await eventually(
    'eight answers came from the cache or are under way',
    () => fromCache() + server.openRequests === 8,
  )
  t.equal(fromCache(), 4, 'an eighth of the connections')
  for (const socket of sockets) socket.destroy()
  await eventually(
    'nothing is being sent',
    () => server.responseCache?.isSending === false && server.openRequests === 0,
  )
  const socket = await connected(server.port)
  socket.write(asking)
  t.equal((await bodyOf(socket, 2 ** 20)).length, 2 ** 20)
  t.equal(fromCache(), 5, 'then it answers from its cache again')
  socket.destroy()
  await close(0)
})

t.test('a client that takes a large body slowly, but steadily, gets all of it', { skip }, async (t) => {
  const sizeBytes = 2 ** 20
  const { server, open, close, whole, aborted } = serving(sizeBytes, { stallMs: 3000 })
  open(0).close()
  const socket = await connected(server.port)
  let got = 0
  socket.pause()
  socket.write(asking)
  const began = Date.now()
  // What the kernel hands over at once is little; the pauses are shorter than what counts as a stall.
  for (let pieces = 0; got <= sizeBytes; pieces += 1) {
    await pause(100)
    const piece: Buffer | null = socket.read(16_384) ?? socket.read()
    got += piece?.length ?? 0
    if (pieces > 500) break
  }
  t.ok(Date.now() - began > 3000, 'it took longer than a stall')
  t.ok(got > sizeBytes)
  await eventually('one answer is whole', () => whole() === 1)
  t.equal(aborted(), 0)
  socket.destroy()
  await close(0)
})

t.test('a client that takes nothing of a large body is let go', { skip }, async (t) => {
  const { server, open, close, aborted, stalled } = serving(2 ** 20, { stallMs: 300 })
  open(0).close()
  const socket = await connected(server.port)
  socket.pause()
  socket.write(asking)
  await eventually('one answer has stalled', () => stalled() === 1)
  t.equal(aborted(), 1)
  t.equal(server.responseCache?.isSending, false)
  socket.destroy()
  await close(0)
})

/** The body of one answer, whose head is behind the bytes that were not read yet. */
function bodyOf(socket: Socket, sizeBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    socket.on('close', () => reject(new Error('it ended before')))
    socket.on('data', (piece) => {
      pieces.push(piece)
      const all = Buffer.concat(pieces)
      const body = all.indexOf('\r\n\r\n') + 4
      if (body > 3 && all.length === body + sizeBytes) resolve(all.subarray(body))
    })
    socket.resume()
  })
}
