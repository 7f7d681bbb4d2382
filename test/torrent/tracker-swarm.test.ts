import t from 'tap'
import { TrackerSwarm } from '../../src/torrent/tracker-swarm.js'
import { random } from '../property.js'

/** So many that nobody has to share. */
const placesMax = 100_000

const peerOf = (at: number) => ({ host: `10.0.${at >> 8}.${at & 255}`, port: 7000 })

t.test('a swarm is the same as a list of its peers in the order of their announces', async (t) => {
  const swarm = new TrackerSwarm(placesMax)
  let model: { host: string; port: number; seenMs: number }[] = []
  for (let step = 0; step < 5000; step += 1) {
    const peer = { host: `h${Math.floor(random() * 20)}`, port: Math.floor(random() * 5) }
    const isPeer = (one: { host: string; port: number }): boolean =>
      one.host === peer.host && one.port === peer.port
    const isThere = model.some(isPeer)
    const act = random()
    if (act < 0.6) {
      t.equal(swarm.see(peer, step), isThere)
      if (!isThere) swarm.add(peer, step)
      model = [...model.filter((one) => !isPeer(one)), { ...peer, seenMs: step }]
    } else if (act < 0.8) {
      t.equal(swarm.remove(peer), isThere)
      model = model.filter((one) => !isPeer(one))
    } else if (act < 0.85) {
      const kept = model.filter(({ seenMs }) => seenMs >= step - 60)
      t.equal(swarm.expire(step - 60), model.length - kept.length)
      model = kept
    }
    const found = swarm.sample(peer, 1000).map(({ host, port }) => `${host} ${port}`)
    const others = model.filter((one) => !isPeer(one)).map(({ host, port }) => `${host} ${port}`)
    if (found.length !== others.length || new Set([...found, ...others]).size !== others.length)
      t.fail(`step ${step}: ${found.length} of ${others.length}`)
    if (swarm.size !== model.length) t.fail(`step ${step}: ${swarm.size} peers`)
    if (swarm.portsOf(peer.host) !== model.filter(({ host }) => host === peer.host).length)
      t.fail(`step ${step}: ports`)
  }
})

t.test('a sample has each peer equally often, and costs the same however many there are', async (t) => {
  const swarm = new TrackerSwarm(placesMax)
  const count = 2000
  for (let at = 0; at < count; at += 1) swarm.add(peerOf(at), 0)
  const times = new Map<string, number>()
  const drawn = Math.random
  let draws = 0
  Math.random = () => {
    draws += 1
    return drawn()
  }
  for (let round = 0; round < 2000; round += 1) {
    for (const { host } of swarm.sample(peerOf(0), 50)) times.set(host, (times.get(host) ?? 0) + 1)
  }
  Math.random = drawn
  t.ok(draws <= 2000 * 51, `${draws} draws`)
  t.equal(times.get(peerOf(0).host), undefined)
  t.equal(times.size, count - 1)
  // 50 of each on average; seven deviations away is less than one in 10^9 for all of them.
  t.ok([...times.values()].every((one) => one > 5 && one < 110))
})
