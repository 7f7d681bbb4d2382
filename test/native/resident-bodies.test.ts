import { closeSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { mappedBy, openMapped } from '../../native/mapped/mapped.js'
import { answerNumbers, count } from '../../native/server/cache-table.js'
import { openWire, servedBy } from '../../native/server/server.js'
import { pause } from '../../src/actor/clock.js'
import { Residence, Ticks } from '../../src/store/residence.js'
import { scratch } from '../scratch.js'

/** The server repeats what it can read without waiting for the disk. Everything else is JavaScript's. */

const bodyBytes = 50_000
const fileBytes = 200_000
const offset = 70_000
const skip = (servedBy === 'fallback' || mappedBy === 'fallback') && 'the fallback has no response cache'

t.test('what is not in memory is no answer of the server', { skip }, async (t) => {
  const path = join(scratch('resident-bodies'), 'file')
  // A file of holes: nothing of it is in memory until it is written.
  writeFileSync(path, '')
  truncateSync(path, fileBytes)
  const file = openMapped(path)
  if (file === undefined) throw new Error('it is not there')
  let heard = 0
  const wire = openWire(
    { host: '127.0.0.1', port: 0, headMs: 9000, idleMs: 9000, stallMs: 9000, lingerMs: 9, connectionsMax: 8 },
    () => {
      heard += 1
    },
  )
  const table = wire.responseCache?.(20_000, [])
  if (table === undefined) throw new Error('it repeats nothing')
  const ticks = new Ticks()
  const here = new Residence(fileBytes, ticks)
  const cells = new Int32Array(new SharedArrayBuffer(4))
  const named = table.cells(cells)
  const places = new Float64Array(count.buckets + 1)
  const tally = table.tally(new Float64Array(new SharedArrayBuffer(800)), places, Float64Array.of(1))
  const region = table.region(file.view(0, fileBytes), here.cells, ticks.numbers, here.cellBytes)
  const text = ['host', '/path', '', 'HTTP/1.1 200 OK\r\nX-Request-Id: ', '\r\nA: b', '']
  const numbers = new Float64Array(answerNumbers)
  const about = [0, 0, 0, ...text.map((one) => one.length), region, offset, bodyBytes, 1, 0, 2 ** 40]
  numbers.set([...about, named, 0, 0, tally, 0, 0, 0, 0])
  table.put(numbers, wire.outbox.write(text.join(''), 'latin1'))

  /** The body of the answer; undefined where JavaScript was asked. */
  async function ask(): Promise<Buffer | undefined> {
    const before = heard
    const socket = connect(wire.port, '127.0.0.1')
    const pieces: Buffer[] = []
    socket.on('data', (piece) => pieces.push(piece))
    socket.write('GET /path HTTP/1.1\r\nHost: host\r\n\r\n')
    for (let turn = 0; turn < 500 && heard === before; turn += 1) {
      const all = Buffer.concat(pieces)
      const head = all.indexOf('\r\n\r\n')
      if (head > 0 && all.length >= head + 4 + bodyBytes) {
        socket.destroy()
        return all.subarray(head + 4)
      }
      await pause(10)
    }
    socket.destroy()
    return undefined
  }

  t.equal(await ask(), undefined, 'not in memory')
  t.notOk(here.has(offset, offset + bodyBytes), 'and not believed to be')

  const right = Buffer.alloc(bodyBytes, 'abc')
  const writer = openSync(path, 'r+')
  writeSync(writer, right, 0, bodyBytes, offset)
  closeSync(writer)
  t.strictSame(await ask(), right, 'in memory: nobody has to say so')
  t.ok(here.has(offset, offset + bodyBytes), 'believed from then on')
  t.notOk(here.has(0, offset), 'of what was not looked at nothing is')
  for (let tick = 0; tick < Ticks.lasting; tick += 1) ticks.next()
  t.notOk(here.has(offset, offset + bodyBytes), 'no longer than it lasts')
  t.strictSame(await ask(), right, 'then the system is asked again')
  t.ok(here.has(offset, offset + bodyBytes))
  wire.destroy()
  file.close()
})
