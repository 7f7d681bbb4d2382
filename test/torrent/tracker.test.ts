import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Clock } from '../../src/actor/clock.js'
import { type BencodeDictionary, decodeBencode } from '../../src/torrent/bencode.js'
import { decodePeers, isNearAddress } from '../../src/torrent/compact-peers.js'
import { Tracker, type TrackerOptions, trackerDefaults } from '../../src/torrent/tracker.js'

class HandClock implements Clock {
  ms = 1_000_000
  now = (): number => this.ms
  monotonic = (): number => this.ms
  after = () => ({ cancel: () => undefined })
  every = () => ({ cancel: () => undefined })
}

const infohash = Buffer.from(Array.from({ length: 20 }, (_, index) => index * 13))
const own = [{ host: '192.0.2.1', port: 6881 }]

function stage(options: Partial<TrackerOptions> = {}) {
  const clock = new HandClock()
  const tracker = new Tracker({ ...trackerDefaults, ...options }, clock)
  tracker.offer([infohash])
  const say = (address: string, port: number, more = '', hash = infohash): BencodeDictionary => {
    const escaped = Array.from(hash, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
    const query = `info_hash=${escaped}&peer_id=x&port=${port}&left=1&compact=1${more}`
    const value = decodeBencode(tracker.announce({ query, address }, own), {
      depthMax: 3,
      valuesMax: 99,
    })?.value
    return value as BencodeDictionary
  }
  const peers = (answer: BencodeDictionary) => decodePeers(answer.get('peers'), answer.get('peers6'), 200)
  const why = (answer: BencodeDictionary): string =>
    Buffer.from(answer.get('failure reason') as Buffer).toString()
  return { clock, tracker, say, peers, why }
}

t.test('peers of a torrent find each other and our seeder, which is named first', async (t) => {
  const { say, peers } = stage()
  t.same(peers(say('198.51.100.1', 7001)), own)
  t.same(peers(say('198.51.100.2', 7002)), [...own, { host: '198.51.100.1', port: 7001 }])
  t.same(peers(say('2001:db8::7', 7003)).length, 3)
  t.same(peers(say('198.51.100.1', 7001)).at(-1), { host: '2001:db8:0:0:0:0:0:7', port: 7003 })
  say('198.51.100.2', 7002, '&event=stopped')
  t.same(
    peers(say('198.51.100.1', 7001)).map(({ port }) => port),
    [6881, 7003],
  )
})

t.test('unknown torrents and malformed announces get a failure', async (t) => {
  const { tracker, say, why } = stage()
  t.equal(why(say('198.51.100.1', 1, '', randomBytes(20))), 'unregistered torrent')
  for (const query of ['', 'info_hash=%', 'info_hash=abc&port=1', '&&&', 'a'.repeat(5000), 'port=1&port=2']) {
    t.match(tracker.announce({ query, address: '198.51.100.1' }, own).toString(), /malformed/)
  }
  t.equal(why(say('198.51.100.1', 0)), 'malformed announce')
  t.equal(why(say('198.51.100.1', 65536)), 'malformed announce')
  t.equal(why(say('unix', 5)), 'no address')
})

t.test('an address in the query of an announce is ignored', async (t) => {
  const { say, peers } = stage()
  say('198.51.100.1', 7001, '&ip=203.0.113.9')
  t.same(peers(say('198.51.100.2', 7002))[1], { host: '198.51.100.1', port: 7001 })
})

t.test('each bound holds', async (t) => {
  const { clock, say, peers, why } = stage({ perTorrentMax: 60, answerMax: 50 })
  for (let index = 0; index < 9; index += 1) say('198.51.100.1', 7000 + index)
  t.equal(peers(say('198.51.100.2', 1)).length, 1 + 4, 'four ports of an address')
  say('198.51.100.1', 7000)
  t.equal(why(say('198.51.100.1', 7000)), 'requested too often')
  clock.ms += 60_000
  t.equal(peers(say('198.51.100.1', 7000)).length, 5, 'and a minute later it may again')
  for (let index = 0; index < 100; index += 1) say(`${20 + index}.51.101.1`, 7000)
  const answer = say('198.51.100.2', 1)
  t.equal(peers(answer).length, 50)
  t.equal(answer.get('incomplete'), 60)
  t.equal(peers(say('198.51.100.2', 1, '&numwant=3')).length, 3)
  for (let index = 0; index < 20; index += 1) say(`2001:db8::${index}`, 7000)
  t.equal(why(say('2001:db8::ffff', 7000)), 'requested too often', 'a /64 counts as one')
  clock.ms += 800_000
  t.same(peers(say('198.51.100.2', 1)), own, 'those who say no more are forgotten')
})

t.test('torrents that are offered no more are forgotten, peers and all', async (t) => {
  const { tracker, say, why } = stage()
  say('198.51.100.1', 7001)
  tracker.offer([])
  t.equal(why(say('198.51.100.2', 7001)), 'unregistered torrent')
})

t.test('private addresses are told from public ones', async (t) => {
  const near = [
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.1',
    '::1',
    'fe80::1',
    '::ffff:10.0.0.1',
    'localhost',
    'localhost.',
    'a.localhost',
    '[::1]',
    '64:ff9b:1::7f00:1',
    '2002:7f00:1::',
    '2001:0:1::1',
    'fec0::1',
    '100::1',
  ]
  const far = ['8.8.8.8', '2001:db8::1', '2003::1', 'gateway.example', 'notlocalhost', '172.32.0.1']
  t.same(
    near.filter((host) => !isNearAddress(host)),
    [],
  )
  t.same(far.filter(isNearAddress), [])
})

t.test('many providers that take all places make room for who comes', async (t) => {
  for (const bounds of [{ perTorrentMax: 64 }, { perTorrentMax: 1000, totalMax: 64 }]) {
    const { clock, say, peers } = stage({ ...bounds, answerMax: 100 })
    for (let provider = 0; provider < 100; provider += 1) say(`${20 + provider}.51.101.1`, 7000)
    for (let turn = 0; turn < 3; turn += 1) {
      // They announce again and again; the newcomers once.
      clock.ms += 60_000
      say(`${198 + turn}.51.100.7`, 7000)
      for (let provider = 0; provider < 40; provider += 1) say(`${20 + provider}.51.101.1`, 7000)
      const all = peers(say('119.51.101.1', 7000, '&numwant=100'))
      t.ok(all.some(({ host }) => host === `${198 + turn}.51.100.7`))
      t.ok(all.length <= 1 + 64)
    }
  }
})

t.test('a network with many addresses leaves places and questions for others', async (t) => {
  const { say, peers, why } = stage({ perTorrentMax: 64, totalMax: 128 })
  for (let range = 0; range < 200; range += 1) say(`2001:db8:7:${range.toString(16)}::1`, 7000)
  const first = say('198.51.100.1', 7000)
  t.equal(first.get('failure reason'), undefined, 'another may ask')
  t.equal(first.get('incomplete'), 33, 'and has a place; the network has half')
  t.equal(why(say('2001:db8:7:ffff::1', 7000)), 'requested too often')
  t.ok(peers(say('203.0.113.1', 7000)).some(({ host }) => host === '198.51.100.1'))
})
