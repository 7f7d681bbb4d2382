import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadAddon } from '../../native/addon.js'
import { message, sharedSizes } from '../../native/server/wire.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

/** The calls of the addons are given whatever JavaScript can hand them: each is an exception, and the next right call works. */

type Call = (...args: unknown[]) => unknown
type Addon = Readonly<Record<string, Call>>

const folder = scratch('rubbish')

function detached(): Uint8Array {
  const bytes = new Uint8Array(64)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

function detachedBuffer(): ArrayBuffer {
  const buffer = new ArrayBuffer(64)
  structuredClone(buffer, { transfer: [buffer] })
  return buffer
}

/** Numbers that are no offset, length, slot or size of anything. */
const wrongNumbers = [
  -1,
  -0.5,
  0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -(2 ** 31),
  2 ** 53,
  2 ** 63,
  2 ** 64,
  -(2 ** 53),
  -(2 ** 63),
  1e308,
  2 ** 53 - 0.5,
  2 ** 32 + 0.5,
]

/** By what it is: an argument is given all but those of its own kind. */
const wrongThings: readonly (readonly [kind: string, value: unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['text', ''],
  ['text', 'x'.repeat(100_000)],
  ['text', '127.0.0.1\u0000'],
  ['boolean', true],
  ['bigint', 1n],
  ['bigint', 2n ** 64n],
  ['symbol', Symbol('x')],
  ['object', {}],
  ['object', []],
  ['object', { valueOf: () => 1, length: 2 ** 53, byteLength: 2 ** 53, buffer: new ArrayBuffer(8) }],
  ['object', Object.create(Uint8Array.prototype)],
  ['object', new Proxy(new Uint8Array(8), {})],
  ['object', new DataView(new ArrayBuffer(64))],
  ['object', new Float64Array(64)],
  ['object', new Int8Array(64)],
  ['object', new SharedArrayBuffer(64)],
  ['object', detached()],
  ['buffer', detachedBuffer()],
  ['function', () => 1],
]

/** What an argument is: a whole number, any amount, an array of larger numbers, or one of the kinds above. */
type Kind = 'whole' | 'amount' | 'bytes' | 'text' | 'boolean' | 'function' | 'buffer' | 'handle' | 'array'

interface Right {
  readonly call: Call
  readonly kinds: readonly Kind[]
  /** Made anew for each call. */
  args(): unknown[]
  /** Numbers that are too large here though they are whole, by argument. */
  readonly beyond?: Readonly<Record<number, number>>
}

/** Each argument wrong by itself, all others right; then fewer arguments than there are. */
function refusesRubbish(t: Test, name: string, { call, kinds, args, beyond = {} }: Right): void {
  const accepted: string[] = []
  const given = (at: number, value: unknown): void => {
    const now = args()
    now[at] = value
    try {
      call(...now)
      const shown = typeof value === 'number' ? value : Object.prototype.toString.call(value)
      accepted.push(`argument ${at}: ${shown}`)
    } catch (error) {
      if (!(error instanceof Error)) throw error
    }
  }
  kinds.forEach((kind, at) => {
    for (const number of wrongNumbers) {
      if (kind === 'amount' && number >= 0 && number < 2 ** 53) continue
      given(at, number)
    }
    if (beyond[at] !== undefined) given(at, beyond[at])
    for (const [other, value] of wrongThings) if (other !== kind) given(at, value)
  })
  for (let count = 0; count < kinds.length; count += 1) {
    try {
      call(...args().slice(0, count))
      accepted.push(`${count} arguments`)
    } catch (error) {
      if (!(error instanceof Error)) throw error
    }
  }
  t.strictSame(accepted, [], name)
}

const mapped = loadAddon<Addon>('mapped')
const digest = loadAddon<Addon>('digest')
const ed25519 = loadAddon<Addon>('ed25519')
const secp256k1 = loadAddon<Addon>('secp256k1')
const schedule = loadAddon<Addon>('schedule')
const words = loadAddon<Addon>('words')
const crash = loadAddon<Addon>('crash')
const server = loadAddon<Addon>('server')
const built = mapped !== undefined && digest !== undefined && server !== undefined
const skip = !built && 'the addons were not built'

function callOf(addon: Addon | undefined, name: string): Call {
  const call = addon?.[name]
  if (call === undefined) throw new Error(`no call ${name}`)
  return call
}

t.test('mapped', { skip }, async (t) => {
  const path = join(folder, 'file')
  const size = 3_000_001
  writeFileSync(path, Buffer.alloc(size, 7))
  const empty = join(folder, 'empty')
  writeFileSync(empty, '')
  const { handle } = callOf(mapped, 'open')(path) as { handle: unknown }
  const none = callOf(mapped, 'open')(empty) as { handle: unknown }
  const window = callOf(mapped, 'window')(handle, 0) as ArrayBuffer
  refusesRubbish(t, 'open', { call: callOf(mapped, 'open'), kinds: ['text'], args: () => [path] })
  for (const text of ['', 'x'.repeat(100_000), `${path}\u0000`, folder, '/proc/self/mem/x'])
    t.throws(
      () => {
        if (callOf(mapped, 'open')(text) === undefined) throw new Error('there is none')
      },
      text.slice(0, 20),
    )
  refusesRubbish(t, 'window', {
    call: callOf(mapped, 'window'),
    kinds: ['handle', 'whole'],
    args: () => [handle, 0],
    beyond: { 1: 1 },
  })
  refusesRubbish(t, 'isResident', {
    call: callOf(mapped, 'isResident'),
    kinds: ['handle', 'whole', 'whole', 'boolean'],
    args: () => [handle, 5, 9, true],
    beyond: { 1: 10, 2: size + 1 },
  })
  refusesRubbish(t, 'fetch', {
    call: callOf(mapped, 'fetch'),
    kinds: ['handle', 'whole', 'whole'],
    args: () => [handle, 5, 9],
    beyond: { 1: 10, 2: size + 1 },
  })
  refusesRubbish(t, 'openWritten', {
    call: callOf(mapped, 'openWritten'),
    kinds: ['text'],
    args: () => [path],
  })
  refusesRubbish(t, 'copy', {
    call: callOf(mapped, 'copy'),
    kinds: ['handle', 'whole', 'bytes'],
    args: () => [handle, 5, new Uint8Array(64)],
    beyond: { 1: size - 63 },
  })
  const file = openSync(path, 'r+')
  refusesRubbish(t, 'allocate', {
    call: callOf(mapped, 'allocate'),
    kinds: ['whole', 'whole'],
    args: () => [file, size],
    beyond: { 0: 2 ** 31, 1: 2 ** 50 + 1 },
  })
  t.equal(callOf(mapped, 'allocate')(file, size), 0)
  closeSync(file)
  refusesRubbish(t, 'keep', {
    call: callOf(mapped, 'keep'),
    kinds: ['whole'],
    args: () => [256],
    beyond: { 0: 2 ** 24 + 1 },
  })
  const places = callOf(mapped, 'places')()
  refusesRubbish(t, 'places', { call: callOf(server, 'places'), kinds: ['handle'], args: () => [places] })
  t.throws(() => callOf(server, 'places')(handle), 'an external of the other addon')
  refusesRubbish(t, 'close', { call: callOf(mapped, 'close'), kinds: ['handle'], args: () => [handle] })
  refusesRubbish(t, 'detach', { call: callOf(mapped, 'detach'), kinds: ['buffer'], args: () => [window] })
  t.throws(() => callOf(mapped, 'window')(none.handle, 0))
  t.equal(callOf(mapped, 'isResident')(none.handle, 0, 0, true), true)
  t.equal(await callOf(mapped, 'fetch')(handle, 0, size), true)
  t.equal(callOf(mapped, 'isResident')(handle, 0, size, true), true)
  t.equal(new Uint8Array(window)[size - 1], 7)
  for (const each of [handle, none.handle]) callOf(mapped, 'close')(each)
  for (const call of ['window', 'isResident', 'fetch', 'close'])
    t.throws(() => callOf(mapped, call)(handle, 0, 1, true), /closed/, `${call} after the end`)
})

t.test('ed25519', { skip: ed25519 === undefined && skip }, async (t) => {
  refusesRubbish(t, 'verify', {
    call: callOf(ed25519, 'verify'),
    kinds: ['bytes', 'bytes', 'bytes'],
    args: () => [new Uint8Array(32), new Uint8Array(64), new Uint8Array(64)],
  })
})

t.test('secp256k1', { skip: secp256k1 === undefined && skip }, async (t) => {
  const [key, signature, digest] = [new Uint8Array(65), new Uint8Array(64), new Uint8Array(32)]
  refusesRubbish(t, 'isKey', { call: callOf(secp256k1, 'isKey'), kinds: ['bytes'], args: () => [key] })
  refusesRubbish(t, 'verify', {
    call: callOf(secp256k1, 'verify'),
    kinds: ['bytes', 'bytes', 'bytes'],
    args: () => [key, signature, digest],
  })
  refusesRubbish(t, 'recover', {
    call: callOf(secp256k1, 'recover'),
    kinds: ['bytes', 'whole', 'bytes', 'bytes'],
    args: () => [signature, 0, digest, key],
    beyond: { 1: 4 },
  })
  refusesRubbish(t, 'sign', {
    call: callOf(secp256k1, 'sign'),
    kinds: ['bytes', 'bytes', 'bytes'],
    args: () => [digest, digest, key],
  })
})

t.test('words', { skip: words === undefined && skip }, async (t) => {
  const starts = Uint32Array.of(0, 1, 3, 3, 3)
  refusesRubbish(t, 'sort', {
    call: callOf(words, 'sort'),
    kinds: ['bytes', 'array', 'array'],
    args: () => [new Uint8Array(3), starts, new Uint32Array(2)],
  })
  const table = () => [new Uint8Array(64), new Uint32Array(8), new Int32Array(8), new Int32Array(16), 0]
  refusesRubbish(t, 'intern', {
    call: callOf(words, 'intern'),
    kinds: ['bytes', 'array', 'array', 'array', 'whole', 'array', 'bytes', 'array', 'array'],
    args: () => [
      ...table(),
      new Int32Array(2),
      new Uint8Array(8),
      Uint32Array.of(1, 0, 8),
      new Uint32Array(1),
    ],
    beyond: { 4: 2 ** 31 },
  })
})

t.test('digest', { skip: skip || digest?.able?.() === false }, async (t) => {
  const start = callOf(digest, 'start')
  const zero = new Uint8Array(0)
  refusesRubbish(t, 'start', {
    call: start,
    kinds: ['whole', 'whole'],
    args: () => [64, 128],
    beyond: { 0: 2 ** 32 + 64, 1: 2 ** 32 + 128 },
  })
  refusesRubbish(t, 'update', {
    call: callOf(digest, 'update'),
    kinds: ['buffer', 'bytes', 'bytes', 'bytes'],
    args: () => [start(64, 128), new Uint8Array(64), new Uint8Array(32), zero],
  })
  refusesRubbish(t, 'finish', {
    call: callOf(digest, 'finish'),
    kinds: ['buffer', 'bytes', 'bytes', 'bytes'],
    args: () => [start(64, 128), new Uint8Array(32), zero, zero],
  })
  refusesRubbish(t, 'blocks', {
    call: callOf(digest, 'blocks'),
    kinds: ['bytes', 'whole', 'bytes'],
    args: () => [new Uint8Array(64), 64, new Uint8Array(32)],
    beyond: { 1: 2 ** 32 + 64 },
  })
  for (const wrong of [detachedBuffer(), new ArrayBuffer(0), new ArrayBuffer(8)])
    t.throws(() => callOf(digest, 'update')(wrong, zero, zero, zero))
  // A pass lies in memory that anybody can write to, and may itself be what digests are written over.
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 12 }),
      fc.nat(),
      fc.nat(400),
      (bytes, place, length) => {
        const pass = start(64, 128) as ArrayBuffer
        const view = new Uint8Array(pass)
        view.set(bytes, place % (view.length - bytes.length))
        const own = (from: number, count: number): Uint8Array =>
          new Uint8Array(pass, from % 8, Math.min(count, view.length - 8))
        for (const blocks of [new Uint8Array(32), own(place, 32), zero])
          for (const name of ['update', 'finish'] as const) {
            try {
              callOf(digest, name)(
                pass,
                name === 'update' ? new Uint8Array(length) : own(place, 32),
                blocks,
                own(place, length % 21),
              )
            } catch (error) {
              if (!(error instanceof Error)) throw error
            }
          }
      },
    ),
    { numRuns: 3000 },
  )
})

t.test('schedule', { skip: schedule === undefined && 'it was not built' }, async (t) => {
  refusesRubbish(t, 'setSlice', {
    call: callOf(schedule, 'setSlice'),
    kinds: ['whole', 'whole'],
    args: () => [0, 0],
    beyond: { 0: 2 ** 32, 1: 2 ** 52 },
  })
  refusesRubbish(t, 'slice', {
    call: callOf(schedule, 'slice'),
    kinds: ['whole'],
    args: () => [0],
    beyond: { 0: 2 ** 32 },
  })
})

t.test('crash', { skip: crash === undefined && 'it was not built' }, async (t) => {
  const keep = callOf(crash, 'keep')
  const args = () => [join(folder, 'note')]
  refusesRubbish(t, 'keep', { call: keep, kinds: ['text'], args })
  t.equal(keep(join(folder, 'no', 'folder')), 2, 'ENOENT')
  t.equal(keep(...args()), 0)
  t.equal(keep(...args()), 16, 'EBUSY: once a process')
})

const connectionsMax = 8
const { inboxNumbers, bytesBytes, outboxBytes } = sharedSizes(connectionsMax)
const opening = (hear: Call): unknown[] => [
  '127.0.0.1',
  0,
  1000,
  1000,
  1000,
  1000,
  connectionsMax,
  inboxNumbers,
  bytesBytes,
  outboxBytes,
  hear,
]

t.test('server', { skip }, async (t) => {
  const open = callOf(server, 'open')
  refusesRubbish(t, 'open', {
    call: open,
    kinds: [
      ...(['text', 'whole', 'amount', 'amount', 'amount', 'amount', 'whole'] as const),
      ...(['whole', 'whole', 'whole', 'function'] as const),
    ],
    args: () => opening(() => undefined),
    beyond: { 1: 65_536, 6: 2 ** 21, 7: 2 ** 29, 8: 2 ** 29, 9: 2 ** 29 },
  })
  for (const host of ['', 'no address', '1'.repeat(64), '127.0.0.1\u0000'])
    t.throws(() => open(host, ...opening(() => undefined).slice(1)), host)
  for (const [at, few] of [
    [7, 100],
    [8, 1000],
    [9, 1000],
  ] as const)
    t.throws(() => open(...opening(() => undefined).with(at, few)), RangeError, 'memory that is too small')

  let rounds = 0
  const body = Buffer.alloc(100_000, 'x')
  const [listener, port, inboxMemory, , outboxMemory] = open(
    ...opening((count) => {
      const inbox = new Int32Array(inboxMemory as ArrayBuffer)
      for (let at = 0; at < Number(count); at += 1) {
        if (rounds > 0 || inbox[0] !== message.request) return
        rounds += 1
        answer(inbox[1] ?? -1)
      }
    }),
  ) as [unknown, number, ArrayBuffer, ArrayBuffer, ArrayBuffer]
  t.teardown(() => callOf(server, 'destroy')(listener))
  const head = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`)

  const answer = (slot: number): void => {
    const send = callOf(server, 'send')
    refusesRubbish(t, 'send', {
      call: send,
      kinds: ['handle', 'whole', 'whole', 'bytes', 'whole'],
      args: () => [listener, slot, 0, Buffer.alloc(0), 0],
      beyond: { 1: connectionsMax + 1, 2: outboxBytes + 1, 4: 8 },
    })
    for (const name of ['read', 'hold', 'release', 'drop', 'address'])
      refusesRubbish(t, name, {
        call: callOf(server, name),
        kinds: ['handle', 'whole'],
        args: () => [listener, slot],
        beyond: { 1: connectionsMax + 1 },
      })
    refusesRubbish(t, 'sweep', {
      call: callOf(server, 'sweep'),
      kinds: ['handle', 'amount'],
      args: () => [listener, 1],
    })
    for (const name of ['shut', 'destroy'])
      refusesRubbish(t, name, { call: callOf(server, name), kinds: ['handle'], args: () => [listener] })
    new Uint8Array(outboxMemory).set(head)
    t.equal(callOf(server, 'address')(listener, slot), '127.0.0.1')
    send(listener, slot, head.length, body, 3)
  }

  const socket = connect({ port, host: '127.0.0.1' })
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'close')
  t.ok(Buffer.concat(pieces).equals(Buffer.concat([head, body])), 'the right answer went out behind all that')

  // Memory that both sides see cannot be taken away from the server.
  for (const memory of [inboxMemory, outboxMemory]) {
    // Since Node 22 it says so; before, it makes a copy.
    if (Number.parseInt(process.versions.node, 10) >= 22)
      t.throws(() => structuredClone(memory, { transfer: [memory] }))
    else structuredClone(memory, { transfer: [memory] })
  }
  const last = connect({ port, host: '127.0.0.1' })
  last.end('GET / HTTP/1.1\r\nHost: a\r\n\r\nno request')
  last.resume()
  last.on('error', () => undefined)
  t.equal(callOf(server, 'send')(listener, 0, 10, Buffer.alloc(0), 0), 0)
  callOf(server, 'sweep')(listener, 10_000_000)
  callOf(server, 'sweep')(listener, 20_000_000)
  callOf(server, 'destroy')(listener)
  for (const name of ['send', 'read', 'hold', 'release', 'drop', 'address', 'sweep', 'shut', 'destroy'])
    t.doesNotThrow(() => callOf(server, name)(listener, 0, 0, Buffer.alloc(0), 0), `${name} after the end`)
})
