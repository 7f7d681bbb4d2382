import t from 'tap'
import { PeerPlaces } from '../../../src/source/upstream/peer-places.js'

const [victim, other, newcomer] = ['203.0.113.9', '198.51.100.1', '192.0.2.1']

/** Takes so many places; gives how many of them were ended since. */
function taken(
  places: PeerPlaces,
  client: string,
  count: number,
  hasHeads = false,
): { readonly ended: number } {
  const all = { ended: 0 }
  for (let at = 0; at < count; at += 1) {
    const place = places.take(client, () => {
      all.ended += 1
      place.leave()
    })
    if (hasHeads) place.headCame()
  }
  return all
}

t.test('who holds as many places ends nobody, bodies included', async (t) => {
  const places = new PeerPlaces(10)
  const waiting = taken(places, victim, 4)
  taken(places, other, 1, true)
  for (let held = 1; places.hasRoom(other); held += 1) {
    if (held > 5) throw new Error('one client has more than half')
    taken(places, other, 1, true)
  }
  t.ok(waiting.ended <= 1, `${waiting.ended} were ended for one that holds nearly as much`)
})

t.test('where half of the places are taken, one that holds more makes room', async (t) => {
  const places = new PeerPlaces(10)
  const greedy = taken(places, other, 5)
  taken(places, newcomer, 1, true)
  t.ok(places.hasRoom(newcomer))
  taken(places, newcomer, 1, true)
  t.equal(greedy.ended, 1)
})

t.test('bodies make room for nobody, and keep no other request from it', async (t) => {
  const places = new PeerPlaces(10)
  taken(places, victim, 5, true)
  const waiting = taken(places, other, 3)
  taken(places, newcomer, 2)
  t.ok(places.hasRoom(newcomer) === (waiting.ended === 0))
  t.equal(waiting.ended, 1)
})

t.test("this program's own requests have no share", async (t) => {
  const places = new PeerPlaces(10)
  for (let at = 0; at < 10; at += 1) {
    t.ok(places.hasRoom(''))
    places.force('')
  }
  t.notOk(places.hasRoom(''))
  const leave = places.force(other)
  leave()
  leave()
  t.notOk(places.hasRoom(''), 'given back once')
})
