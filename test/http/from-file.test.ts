import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { keepOpen } from '../../native/mapped/mapped.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { eventually } from '../eventually.js'
import { openFiles } from '../open-files.js'
import { scratch } from '../scratch.js'
import { HandClock } from './hand-clock.js'
import { connect, serve } from './transport.js'
import { ways } from './ways.js'

/** Bodies that the server may send from the files that they lie in, in pieces of any size and place. */

const folder = scratch('from-file')
const bytes = randomBytes(5_000_003)
const windows = [
  [0, 65_536],
  [1, 65_537],
  [4097, 75_000],
  [2_097_000, 2_300_000],
  [123_457, 4_999_999],
  [0, bytes.length],
] as const

function opened(t: Test, path: string, by: (typeof ways)[number]) {
  writeFileSync(path, bytes)
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 10, believeMs: 1000 }, new HandClock())
  t.teardown(() => files.close())
  const server = serve(
    (request, reply) => {
      const content = files.open(path)
      if (content === undefined) throw new Error('it was just written')
      const [start = 0, end = 0] = request.path.slice(1).split('-').map(Number)
      void reply.stream({ status: 200, block: 'A: b' }, [{ start, end }], content)
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 10_000,
      requestsMax: 10,
      by,
      onThrow: (error) => t.fail(String(error)),
    },
  )
  t.teardown(() => server.close(0))
  return { server, files }
}

/** All windows over one connection, one request behind the other; `waitMs` between two looks at what came. */
async function read(port: number, waitMs: number): Promise<Buffer[]> {
  const socket = connect(port)
  const paths = windows.map(([start, end]) => `GET /${start}-${end} HTTP/1.1\r\nHost: a\r\n`)
  socket.write(`${paths.join('\r\n')}Connection: close\r\n\r\n`)
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => {
    pieces.push(piece)
    if (waitMs === 0) return
    socket.pause()
    setTimeout(() => socket.resume(), waitMs)
  })
  await once(socket, 'close')
  const all = Buffer.concat(pieces)
  let at = 0
  return windows.map(([start, end]) => {
    const from = all.indexOf('\r\n\r\n', at) + 4
    at = from + end - start
    return all.subarray(from, at)
  })
}

for (const by of ways) {
  for (const waitMs of [0, 3])
    t.test(`${by}: all windows of a file are its bytes, with ${waitMs} ms between two reads`, async (t) => {
      const { server } = opened(t, join(folder, `${by}-${waitMs}`), by)
      await server.listening
      const found = await read(server.port, waitMs)
      for (const [at, [start, end]] of windows.entries())
        t.ok(found[at]?.equals(bytes.subarray(start, end)), `${start} to ${end}`)
    })

  t.test(`${by}: a file that was unlinked, or that is not kept open, is sent to its end`, async (t) => {
    const path = join(folder, `${by}-unlinked`)
    keepOpen(0)
    const { server, files } = opened(t, path, by)
    await server.listening
    const content = files.open(path)
    t.equal(descriptorsOf(path), 0)
    unlinkSync(path)
    const [found] = await read(server.port, 0)
    t.ok(found?.equals(bytes.subarray(0, 65_536)))
    content?.close()
    keepOpen(256)
  })
}

function descriptorsOf(path: string): number {
  return openFiles(path).filter((each) => each === path).length
}

t.test('a mapped file is kept open once, and closed with its mapping', async (t) => {
  const path = join(folder, 'kept')
  writeFileSync(path, bytes)
  const options = { mappedMaxBytes: 2 ** 30, filesMax: 10, believeMs: 1000 }
  const both = [new MappedFiles(options, new HandClock()), new MappedFiles(options, new HandClock())]
  for (const files of both) files.open(path)?.close()
  if (ways.includes('addon')) t.equal(descriptorsOf(path), 1)
  for (const files of both) files.close()
  await eventually('the file is closed', () => descriptorsOf(path) === 0)
})
