import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { LazySignal } from '../../../src/actor/lazy-signal.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { RawClient } from '../../../src/source/upstream/raw-client.js'
import { placeHeldFirst } from '../../../src/source/upstream/take-place.js'
import { hopRules, someId, trail, upstream } from '../rig.js'

t.test('whether a gateway answers needs none of the sockets that readers hold', async (t) => {
  const server = await upstream(({ url }, response) => {
    if (url?.endsWith('healthcheck') === true) response.writeHead(404).end()
    else response.writeHead(200, { 'content-length': 1000 }).write('begun')
  })
  const options = { ...hopRules, headMs: 10_000, stallMs: 60_000, connectionsMax: 1, release: 'test' }
  const client = new RawClient('peers', options, systemClock)
  const wanted = { id: someId(), hints: {}, provenance: trail, avoid: new Set<string>() }
  const takePlace = placeHeldFirst(
    () => undefined,
    () => () => undefined,
  )
  const found = await client.request(server.url, false, wanted, takePlace, new LazySignal())
  if (isRefusal(found)) throw new Error(found.message)
  t.equal(await client.answers(server.url), true)
  found.drop()
  await Promise.all([client.close(), server.close()])
})
