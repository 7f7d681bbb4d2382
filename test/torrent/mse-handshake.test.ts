/** Encrypted connections: with libtorrent in both directions, between our own, and under a flood. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Download, downloadDefaults } from '../../src/torrent/download.js'
import { type Encryption, MseInitiator } from '../../src/torrent/mse-handshake.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { type Torrent, torrentBytes } from '../../src/torrent/torrent.js'
import { encodeHandshake } from '../../src/torrent/wire.js'
import { eventually } from '../eventually.js'
import { python, script, withoutLibtorrent } from './libtorrent.js'
import { leech, plantBand, sameFiles, startSeeder } from './swarm-rig.js'

const files = { a: randomBytes(3_000_000), b: randomBytes(10), c: randomBytes(400_000) }

function download(torrent: Torrent, folder: string, encryption: Encryption): Download {
  const options = {
    ...downloadDefaults,
    line: connectionDefaults,
    webAfterMs: 60_000,
    isNear: true,
    encryption,
  }
  return new Download(torrent, folder, options, systemClock, randomBytes(20))
}

/** What stands in a meter of ends. */
function ends(text: string, reason: string): number {
  return Number(new RegExp(`torrent_connections_ended_total{reason="${reason}"} (\\d+)`).exec(text)?.[1] ?? 0)
}

/** Forwards a port, and records what each side sent. */
async function listenIn(t: Test, port: number): Promise<{ port: number; heard: () => Buffer }> {
  const parts: Buffer[] = []
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
      one.on('data', (part: Buffer) => {
        parts.push(Buffer.from(part))
        other.write(part)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    heard: () => Buffer.concat(parts),
  }
}

t.test(
  'libtorrent gets a band from us with each kind of encryption',
  { skip: withoutLibtorrent() },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'band'), files)
    const { port, meters } = await startSeeder(t, [band])
    const { port: strict } = await startSeeder(t, [band], { encryption: 'require' })
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(band.torrent))
    const v2 = `magnet:?xt=urn:btmh:1220${band.torrent.infohashV2.toString('hex')}`
    const cases = [
      { name: 'rc4', source: file, how: 'rc4', to: port },
      { name: 'clear', source: file, how: 'clear', to: port },
      // Where both can do both, the bytes are in clear.
      { name: 'any', source: v2, how: 'clear', to: port },
      { name: 'any', source: v2, how: 'rc4', to: strict },
    ]
    await Promise.all(
      cases.map(async ({ name, source, how, to }, index) => {
        const folder = join(outer, `got-${index}`)
        mkdirSync(folder)
        const output = await leech(source, folder, '--peer', String(to), '--encrypted', name)
        t.match(
          output,
          new RegExp(`done \\S+ ${how}\n`),
          `${name} from ${source === file ? 'file' : 'v2 magnet'}`,
        )
        sameFiles(t, files, join(folder, band.torrent.name))
      }),
    )
    t.equal(ends(meters.text(), 'garbage'), 0)
  },
)

t.test(
  'we get a band from a libtorrent that speaks no other way',
  { skip: withoutLibtorrent() },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'x'), files)
    await plantBand(join(outer, band.torrent.name), files)
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(band.torrent))
    const ways: readonly (readonly [string, Encryption])[] = [
      ['rc4', 'require'],
      ['clear', 'prefer'],
      ['rc4', 'accept'],
    ]
    for (const [theirs, ours] of ways) {
      const words = ['seed', file, outer, '--seconds', '110', '--encrypted', theirs]
      const seeding = spawn(python, [script('torrent_peer.py'), ...words])
      t.teardown(() => seeding.kill())
      const [line] = (await once(createInterface({ input: seeding.stdout }), 'line')) as [string]
      const folder = join(outer, `${theirs}-${ours}`)
      const got = download(band.torrent, folder, ours)
      got.addPeers([{ host: '127.0.0.1', port: Number(line.split(' ')[1]) }])
      t.ok(await got.run(), `${theirs} by ${ours}`)
      sameFiles(t, files, folder)
      seeding.kill()
    }
  },
)

t.test('with encryption required no plain text is on the wire', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), files)
  const { port } = await startSeeder(t, [band], { encryption: 'require' })
  const between = await listenIn(t, port)
  const got = download(band.torrent, join(outer, 'got'), 'require')
  got.addPeers([{ host: '127.0.0.1', port: between.port }])
  t.ok(await got.run())
  sameFiles(t, files, join(outer, 'got'))
  const heard = between.heard()
  t.ok(heard.length > 3_400_000)
  const { infohashV1, infohashV2 } = band.torrent
  for (const word of [
    'BitTorrent',
    'ut_metadata',
    infohashV1,
    infohashV2.subarray(0, 20),
    files.b,
    files.a.subarray(0, 20),
  ]) {
    t.notOk(heard.includes(word))
  }
})

t.test('peers whose encryption settings exclude each other do not connect', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(100_000) })
  const strict = await startSeeder(t, [band], { encryption: 'require' })
  const open = await startSeeder(t, [band], { encryption: 'off' })
  const tries: readonly (readonly [Encryption, number, boolean])[] = [
    ['off', strict.port, false],
    ['require', open.port, false],
    ['prefer', open.port, true],
    ['accept', strict.port, true],
  ]
  await Promise.all(
    tries.map(async ([ours, port, comes]) => {
      const got = download(band.torrent, join(outer, `${ours}`), ours)
      got.addPeers([{ host: '127.0.0.1', port }])
      const coming = got.run().catch(() => false)
      if (!comes) {
        const [{ meters }, word] = ours === 'off' ? [strict, 'clear'] : [open, 'garbage']
        await eventually('the connection has ended so', () => ends(meters.text(), word) >= 1)
        got.stop()
      }
      t.equal(await coming, comes, ours)
    }),
  )
})

/** A connection that says some bytes and waits for its end. */
async function say(port: number, bytes: Uint8Array): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => 'the seeder hung up')
  await once(socket, 'connect')
  socket.resume().write(bytes)
  return socket
}

t.test('a flood of half handshakes costs little, and a peer comes through it', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(100_000) })
  const line = { ...connectionDefaults, handshakeMs: 60_000 }
  // A window of ten seconds that does not end.
  const clock = { ...systemClock, monotonic: () => 1000 }
  const most = { line, peersMax: 40, peersPerAddressMax: 40 }
  const { port, meters } = await startSeeder(t, [band], most, clock)
  const first = new MseInitiator(band.torrent.infohashV1, true).begin().subarray(0, 96)
  // Shorter than a key: no secret is computed, and nothing is answered.
  const silent: Socket[] = []
  for (let count = 0; count < 50; count += 1) silent.push(await say(port, first.subarray(0, 95)))
  const gone = silent.slice(0, 30)
  await Promise.all(gone.map((socket) => socket.closed || once(socket, 'close')))
  t.equal(ends(meters.text(), 'full'), 30, 'the oldest had to make room')
  t.ok(silent.every(({ bytesRead }) => bytesRead === 0))
  const got = download(band.torrent, join(outer, 'got'), 'accept')
  got.addPeers([{ host: '127.0.0.1', port }])
  t.ok(await got.run(), 'while half of the room is held')
  // Whole ones: so many secrets for one address, and no more.
  const whole: Socket[] = []
  for (let count = 0; count < 30; count += 1) {
    const socket = await say(port, first)
    whole.push(socket)
    await Promise.race([once(socket, 'data'), once(socket, 'close')])
  }
  t.equal(whole.filter(({ bytesRead }) => bytesRead > 0).length, 20)
  t.equal(ends(meters.text(), 'flood'), 10)
  for (const socket of [...silent, ...whole]) socket.destroy()
})

t.test('malformed handshakes end the connection, whatever pieces they arrive in', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(100_000) })
  const { port, meters } = await startSeeder(t, [band])
  const other = randomBytes(20)
  const asking = new MseInitiator(other, true)
  const socket = await say(port, asking.begin())
  socket.on('data', (part: Buffer) => {
    const step = asking.push(part)
    if (step.kind === 'more' && step.reply !== undefined) socket.write(step.reply)
  })
  await once(socket, 'close')
  t.equal(ends(meters.text(), 'unknown'), 1, 'encrypted for a torrent that is not here')
  for (const bytes of [Buffer.alloc(96), Buffer.alloc(2000), randomBytes(2000)]) {
    await once(await say(port, bytes), 'close')
  }
  t.equal(ends(meters.text(), 'garbage'), 3)
  await once(await say(port, encodeHandshake(other, randomBytes(20))), 'close')
  t.equal(ends(meters.text(), 'unknown'), 2)
})
