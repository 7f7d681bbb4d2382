import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { RemoteFreeTier } from '../../../src/payment/links/remote-free-tier.js'
import { serveWeb } from '../../admission/web.js'

t.test('only an answer with a count of bytes is one', async (t) => {
  let answer: readonly [status: number, body: object] = [200, {}]
  const paths: string[] = []
  const web = await serveWeb(t, (call) => {
    paths.push(call.path)
    call.json(...answer)
  })
  const tier = new RemoteFreeTier(web.url, systemClock)
  t.teardown(() => tier.close())
  for (const bytesRemaining of [0, 5, null]) {
    answer = [200, { bytesRemaining }]
    t.equal(await tier.remaining('a b&c'), bytesRemaining)
  }
  t.match(paths[0], '/v1/account/free')
  const wrong: [number, object][] = [
    ...[{}, { bytesRemaining: -1 }, { bytesRemaining: 1.5 }, { bytesRemaining: '5' }].map(
      (body): [number, object] => [200, body],
    ),
    [404, { bytesRemaining: 5 }],
  ]
  for (const one of wrong) {
    answer = one
    t.ok(isRefusal(await tier.remaining('x')), JSON.stringify(one))
  }
})
