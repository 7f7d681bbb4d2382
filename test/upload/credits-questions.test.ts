/** Questions about credits that anybody may ask of the upload service: who asks much waits for himself. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { TimedTurns } from '../../src/actor/timed-turns.js'
import type { Clients } from '../../src/admission/clients.js'
import type { Request } from '../../src/http/exchange.js'
import type { CheckOrder } from '../../src/payment/credits-port.js'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { creditsRoutes, questionTurns } from '../../src/upload/routes/credits-routes.js'

t.test('few questions are at the payment service, and a newcomer does not wait behind a flood', async (t) => {
  let open = 0
  let most = 0
  const orders: CheckOrder[] = []
  const answer = async <T>(value: T): Promise<T> => {
    open += 1
    most = Math.max(most, open)
    await new Promise(setImmediate)
    open -= 1
    return value
  }
  const credits = {
    price: () => answer({ winc: '5' }),
    check: (order: CheckOrder) => {
      orders.push(order)
      return answer({ isEnough: true, isUnknownWallet: false, winc: '5', balance: '7' })
    },
  }
  const clients = { of: ({ host: address }: { host: string }) => ({ address }) } as unknown as Clients
  const routes = creditsRoutes({ credits, clients, turns: new TimedTurns(questionTurns, systemClock) })
  const ask = async (path: string, host: string): Promise<UploadAnswer> => {
    const route = routes.find((one) => one.path === path)
    const request = { host, query: `address=${'A'.repeat(43)}` } as unknown as Request
    const found = await route?.answer(request, { byteCount: '1000' }, { inform: () => undefined })
    if (found === undefined) throw new Error(`there is no ${path}`)
    return found
  }
  const flood = Array.from({ length: 600 }, (_, at) =>
    ask(at % 2 === 0 ? '/account/balance' : '/price/{byteCount}', `198.51.100.${at & 127}`),
  )
  const greedy = Array.from({ length: 100 }, () => ask('/account/balance', '192.0.2.1'))
  let isFloodOver = false
  const over = Promise.all(flood).then((answers) => {
    isFloodOver = true
    return answers
  })
  t.match(await ask('/account/balance', '203.0.113.5'), { status: 200, text: '7' })
  t.equal(isFloodOver, false)
  t.equal(most, 4)
  const statuses = new Set((await over).map(({ status }) => status))
  t.ok([...statuses].every((status) => [200, 429, 503].includes(status)))
  t.ok((await Promise.all(greedy)).some(({ status }) => status === 429))
  t.match(orders.at(-1), { isQuestion: true })
})
