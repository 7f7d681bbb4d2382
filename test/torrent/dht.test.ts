/** The distributed hash table: among nodes of libtorrent, and among liars. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { Agent } from 'undici'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { BandFetch } from '../../src/bands/band-fetch.js'
import type { PublicationDocument } from '../../src/bands/publication.js'
import {
  type Bencodable,
  type BencodeDictionary,
  decodeBencode,
  encodeBencode,
} from '../../src/torrent/bencode.js'
import { Dht, dhtUrl } from '../../src/torrent/dht.js'
import { DhtNode } from '../../src/torrent/dht-node.js'
import { Walk } from '../../src/torrent/dht-walk.js'
import { downloadDefaults } from '../../src/torrent/download.js'
import { type DhtContact, encodeDhtAnswer } from '../../src/torrent/krpc.js'
import { nodeId } from '../../src/torrent/node-id.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { Swarm } from '../../src/torrent/swarm.js'
import { torrentBytes } from '../../src/torrent/torrent.js'
import { trackerDefaults } from '../../src/torrent/tracker.js'
import { udpTimeouts } from '../../src/torrent/udp-announce.js'
import { TestPublisher } from '../bands/publisher-rig.js'
import { python, script, withoutLibtorrent } from './libtorrent.js'
import { leech, plantBand, sameFiles, seederOptions, testMeters } from './swarm-rig.js'

const place = { host: '127.0.0.1', port: 0, addresses: [], answerMs: 5000 }
const never = new AbortController().signal

/** Nodes of libtorrent; their ports. */
async function plantTable(t: Test, count: number, host = '127.0.0.1'): Promise<readonly number[]> {
  const nodes = spawn(python, [script('dht_nodes.py'), String(count), host], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => nodes.kill())
  const [line] = (await once(createInterface({ input: nodes.stdout }), 'line')) as [string]
  return line.split(' ').slice(1).map(Number)
}

t.test('libtorrent finds our seeder by its infohash alone', { skip: withoutLibtorrent() }, async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(1_000_000), b: randomBytes(10) })
  const file = join(outer, 'band.torrent')
  writeFileSync(file, torrentBytes(band.torrent))
  const ports = await plantTable(t, 5)
  const [, first = 0, second = 0] = ports
  const meters = testMeters()
  const dht = await Dht.open([{ host: '127.0.0.1', port: first }], place, systemClock, meters)
  const dispatcher = new Agent()
  const infohashV1 = band.torrent.infohashV1.toString('hex')
  const swarm = new Swarm(
    {
      seeder: seederOptions,
      tracker: trackerDefaults,
      timeouts: udpTimeouts,
      addresses: [],
      trackers: [dhtUrl],
    },
    () => [{ infohashV1, torrentPath: file, path: band.path }],
    systemClock,
    meters,
    silentLog,
    dispatcher,
    dht,
  )
  const port = await swarm.start()
  t.teardown(async () => {
    await swarm.close()
    dht.close()
    await dispatcher.destroy()
  })
  while (meters.total('torrent_announces_total') === 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
  t.match(meters.text(), 'torrent_announces_total{outcome="answered"} 1')

  const { infohashV2 } = band.torrent
  const urns = { v1: `btih:${infohashV1}`, v2: `btmh:1220${infohashV2.toString('hex')}` }
  await Promise.all(
    Object.entries(urns).map(async ([name, urn]) => {
      const folder = join(outer, name)
      mkdirSync(folder)
      t.match(await leech(`magnet:?xt=urn:${urn}`, folder, '--dht', String(second)), /done/, name)
      sameFiles(t, band.files, join(folder, band.torrent.name))
    }),
  )

  // Another of ours hears of it too, and announces nothing while it has not got it.
  const other = await Dht.open([{ host: 'localhost', port: second }], place, systemClock, meters)
  t.teardown(() => other.close())
  const asking = {
    url: dhtUrl,
    infohashes: [band.torrent.infohashV1],
    peerId: randomBytes(20),
    port: 1,
    left: 1,
  }
  const announced = await other.announce(asking, never)
  t.ok(announced?.peers.some((peer) => peer.host === '127.0.0.1' && peer.port === port))
  t.notOk(announced?.peers.some((peer) => peer.port === 1))

  // And so comes a band whose publisher's own tracker knows nobody.
  const publisher = new TestPublisher()
  const url = await publisher.listen()
  t.teardown(() => publisher.close())
  const listed = publisher.publish([{ id: 'band', files: band.files, torrent: band.torrent }])
  const { name: index, kind, bands } = (JSON.parse(listed.toString()) as PublicationDocument).indexes[0]!
  const fetching = new BandFetch({ url, index, kind, band: bands[0]! }, join(outer, 'fetched'), {
    http: { dispatcher, timeoutMs: 5000, userAgent: 'test' },
    clock: systemClock,
    peerId: randomBytes(20),
    download: { ...downloadDefaults, webAfterMs: 60_000, line: connectionDefaults },
    trackers: [dhtUrl],
    dht: other,
  })
  const before = meters.total('torrent_sent_bytes_total')
  t.equal(await fetching.run(), undefined)
  t.equal(meters.total('torrent_sent_bytes_total') - before, 1_000_010)
})

const hasV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === 'IPv6'))

t.test('torrents are announced to the DHT of IPv6 too', { skip: withoutLibtorrent() }, async (t) => {
  if (!hasV6) return t.comment('no IPv6 here')
  const [, first = 0, second = 0] = await plantTable(t, 4, '::1')
  const open = async (port: number): Promise<Dht> => {
    const entries = [{ host: '::1', port }]
    const dht = await Dht.open(entries, { ...place, host: '::' }, systemClock, testMeters())
    t.teardown(() => dht.close())
    return dht
  }
  const about = { url: dhtUrl, infohashes: [randomBytes(20)], peerId: randomBytes(20) }
  t.ok(await (await open(first)).announce({ ...about, port: 7001, left: 0 }, never))
  const announced = await (await open(second)).announce({ ...about, port: 1, left: 1 }, never)
  t.same(announced?.peers, [{ host: '0:0:0:0:0:0:0:1', port: 7001 }])
})

/** What a question says. */
interface Question {
  readonly name: string
  readonly transaction: Buffer
  readonly fields: BencodeDictionary
}

/** A node of the test's own: `answer` makes what it sends. */
async function plantNode(
  t: Test,
  answer: (question: Question, socket: Socket) => readonly Buffer[],
): Promise<{ port: number; heard: Question[] }> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const heard: Question[] = []
  socket.on('message', (bytes, from) => {
    const message = decodeBencode(bytes, { depthMax: 4, valuesMax: 100 })?.value as BencodeDictionary
    const text = (value: unknown): Buffer => Buffer.from(value as Buffer)
    const question = {
      name: text(message.get('q')).toString(),
      transaction: text(message.get('t')),
      fields: message.get('a') as BencodeDictionary,
    }
    heard.push(question)
    for (const reply of answer(question, socket)) socket.send(reply, from.port, from.address)
  })
  return { port: socket.address().port, heard }
}

async function plantDhtNode(
  t: Test,
  meters = testMeters(),
  answerMs = 10_000,
  clock = systemClock,
): Promise<DhtNode> {
  const options = { host: '127.0.0.1', port: 0, address: undefined, answerMs }
  const node = await DhtNode.open(options, clock, meters)
  if (node === undefined) throw new Error('no network')
  t.teardown(() => node.close())
  return node
}

const infohash = randomBytes(20)

t.test('a lookup goes from node to node, and sends each node its own token', async (t) => {
  const ids = Array.from({ length: 12 }, () => randomBytes(20))
  const contacts: DhtContact[] = []
  const heard: Question[][] = []
  for (const [index, id] of ids.entries()) {
    const node = await plantNode(t, ({ name, transaction }) => {
      const token = name === 'get_peers' ? Buffer.from(`token ${index}`) : undefined
      // Each knows the one behind it only.
      const next = contacts.slice(index + 1, index + 2)
      const peers = index === 11 ? [{ host: '127.0.0.1', port: 7001 }] : []
      return [encodeDhtAnswer({ transaction, id, token, contacts: next, peers })]
    })
    contacts.push({ id, host: '127.0.0.1', port: node.port })
    heard.push(node.heard)
  }
  const nearest = [...contacts.keys()].sort((one, other) => {
    const distance = (index: number): string => xor(ids[index]!, infohash)
    return distance(one) < distance(other) ? -1 : 1
  })
  const node = await plantDhtNode(t)
  // From one to the next the way may end at once, where the next is too far: so all are known at the beginning.
  const walked = await node.walk(infohash, 6881, contacts, never)
  t.equal(walked.stored, 8)
  const announcedTo = heard.flatMap((questions, index) => {
    return questions.some(({ name }) => name === 'announce_peer') ? [index] : []
  })
  t.same(
    announcedTo,
    nearest.slice(0, 8).sort((one, other) => one - other),
    'the nearest eight are told',
  )
  for (const index of announcedTo) {
    const question = heard[index]!.find(({ name }) => name === 'announce_peer')
    t.equal(Buffer.from(question?.fields.get('token') as Buffer).toString(), `token ${index}`)
    t.equal(question?.fields.get('port'), 6881)
  }
})

function xor(one: Buffer, other: Buffer): string {
  return Buffer.from(one.map((byte, at) => byte ^ other[at]!)).toString('hex')
}

t.test('false answers cannot make a lookup exceed its queries, or leave its network', async (t) => {
  const id = randomBytes(20)
  let fresh = 0
  // Each answer tells of eight nearer ones that are nowhere.
  const liar = await plantNode(t, ({ transaction }) => {
    const contacts = Array.from({ length: 16 }, () => {
      fresh += 1
      const near = Buffer.concat([infohash.subarray(0, 10), randomBytes(10)])
      return { id: near, host: '127.0.0.1', port: 1 + (fresh % 65_535) }
    })
    const values = { transaction, id, token: undefined, contacts, peers: [] }
    return [
      randomBytes(100),
      Buffer.alloc(0),
      encodeDhtAnswer({ ...values, transaction: randomBytes(4) }),
      encodeDhtAnswer(values),
    ]
  })
  const meters = testMeters()
  const node = await plantDhtNode(t, meters, 30)
  const walked = await node.walk(infohash, 6881, [{ host: '127.0.0.1', port: liar.port }], never)
  t.same([walked.stored, walked.peers], [0, []])
  const questions = meters.total('dht_questions_total')
  t.ok(questions > 0 && questions <= 121, `${questions} questions`)
  const silent = await plantNode(t, () => [])
  const alone = await node.walk(infohash, 6881, [{ host: '127.0.0.1', port: silent.port }], never)
  t.equal(alone.stored, 0)
  const end = new AbortController()
  const running = node.walk(infohash, 6881, [{ host: '127.0.0.1', port: silent.port }], end.signal)
  end.abort()
  t.equal((await running).stored, 0)
})

t.test('on the public network a lookup asks no private address, no node twice and no low port', async (t) => {
  const walk = new Walk(infohash, randomBytes(20), false)
  const contact = (host: string, port = 6881): DhtContact => ({ id: randomBytes(20), host, port })
  const bad = [
    '127.0.0.1',
    '10.1.1.1',
    '192.168.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '::1',
    'fe80::1',
    '::ffff:10.0.0.1',
  ]
  walk.add([...bad.map((host) => contact(host)), contact('8.8.8.8', 53)])
  t.equal(walk.next(), undefined)
  const first = contact('8.8.8.8')
  walk.add([first, contact('8.8.8.8', 6882), contact('2001:db8::1'), contact('2001:db8::2')])
  t.same([walk.next(), walk.next()].map((one) => one?.host).sort(), ['2001:db8::1', '8.8.8.8'])
  t.equal(walk.next(), undefined)
  walk.silent(first)
  walk.add([first])
  t.equal(walk.next(), undefined, 'who was silent is not asked again')
})

t.test('answers that were not asked for are ignored, and each answer counts once', async (t) => {
  const node = await plantDhtNode(t)
  const other = await plantNode(t, ({ transaction, name }) => {
    const values = { id: infohash, contacts: [], peers: [{ host: '10.0.0.1', port: 5 }] }
    const answer = encodeDhtAnswer({ ...values, transaction, token: Buffer.from(name) })
    return [answer, answer, answer]
  })
  const walked = await node.walk(infohash, undefined, [{ host: '127.0.0.1', port: other.port }], never)
  t.equal(walked.answered, 1)
  t.ok(
    other.heard.every(({ name }) => name === 'get_peers'),
    'nothing is announced without a port',
  )
})

t.test(
  'queries of others get nearer nodes, announces are not stored, and a flood is not answered',
  async (t) => {
    // One second that does not end.
    const clock = { ...systemClock, monotonic: () => 1000 }
    const node = await plantDhtNode(t, testMeters(), 10_000, clock)
    const known = await plantNode(t, ({ transaction }) => {
      return [encodeDhtAnswer({ transaction, id: infohash, token: undefined, contacts: [], peers: [] })]
    })
    await node.walk(infohash, undefined, [{ host: '127.0.0.1', port: known.port }], never)
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    const ask = async (
      q: string,
      a: readonly (readonly [string, Bencodable])[] = [],
    ): Promise<BencodeDictionary> => {
      const fields = new Map<string, Bencodable>([['id', randomBytes(20)], ...a])
      const question = new Map<string, Bencodable>([
        ['a', fields],
        ['q', q],
        ['t', 'aa'],
        ['y', 'q'],
      ])
      socket.send(encodeBencode(question), node.port, '127.0.0.1')
      const [bytes] = (await once(socket, 'message')) as [Buffer]
      return decodeBencode(bytes, { depthMax: 4, valuesMax: 100 })?.value as BencodeDictionary
    }
    const pong = (await ask('ping')).get('r') as BencodeDictionary
    t.equal((pong.get('id') as Buffer).length, 20)
    for (const [name, field] of [
      ['find_node', 'target'],
      ['get_peers', 'info_hash'],
    ] as const) {
      const answer = (await ask(name, [[field, infohash]])).get('r') as BencodeDictionary
      const nodes = Buffer.concat([infohash, Buffer.from([127, 0, 0, 1, known.port >> 8, known.port & 255])])
      t.ok(Buffer.from(answer.get('nodes') as Buffer).equals(nodes), name)
      t.notOk(answer.has('token'))
    }
    t.same((await ask('announce_peer', [['info_hash', infohash]])).get('y'), Buffer.from('e'))
    t.same((await ask('sing')).get('y'), Buffer.from('e'))
    t.same((await ask('get_peers')).get('y'), Buffer.from('e'))
    const broken = Buffer.from('d1:q4:ping1:t2:aa1:y1:qe')
    for (const bytes of [Buffer.alloc(0), randomBytes(50), randomBytes(60_000), broken]) {
      socket.send(bytes, node.port, '127.0.0.1')
    }
    let answered = 0
    socket.on('message', () => {
      answered += 1
    })
    const ping = Buffer.from('d1:ad2:id20:aaaaaaaaaaaaaaaaaaaae1:q4:ping1:t2:aa1:y1:qe')
    for (let count = 0; count < 300; count += 1) socket.send(ping, node.port, '127.0.0.1')
    await new Promise((resolve) => setTimeout(resolve, 300))
    t.ok(answered <= 10, `${answered} answers`)
  },
)

t.test('an id belongs to an address, as the vectors of BEP 42 have it', async (t) => {
  const vectors = [
    ['124.31.75.21', '5fbfbff10c5d6a4ec8a88e4c6ab4c28b95eee401'],
    ['21.75.31.124', '5a3ce9c14e7a08645677bbd1cfe7d8f956d53256'],
    ['65.23.51.170', 'a5d43220bc8f112a3d426c84764f8c2a1150e616'],
    ['84.124.73.14', '1b0321dd1bb1fe518101ceef99462b947a01ff41'],
    ['43.213.53.83', 'e56f6cbf5b7c4be0237986d5243b87aa6d51305a'],
  ] as const
  for (const [address, hex] of vectors) {
    const random = Buffer.from(hex, 'hex')
    random.fill(0xff, 0, 2)
    random[2]! |= 0xf8
    t.equal(nodeId(address, random).toString('hex'), hex, address)
  }
})

t.test('only addresses with a port are taken as nodes', async (t) => {
  const read = (text: string): unknown => {
    const config = readConfig({}, { INDEX_DHT_NODES: text })
    return 'swarm' in config ? config.swarm.dhtNodes : 'refused'
  }
  t.same(read('router.example:6881, [2001:db8::1]:80,192.0.2.1:1'), [
    { host: 'router.example', port: 6881 },
    { host: '2001:db8::1', port: 80 },
    { host: '192.0.2.1', port: 1 },
  ])
  for (const bad of ['router.example', 'a:0', 'a:70000', '2001:db8::1:80', 'http://a:1', 'a b:1', ':1']) {
    t.equal(read(bad), 'refused', bad)
  }
})
