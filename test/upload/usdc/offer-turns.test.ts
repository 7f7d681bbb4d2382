/** Offers, and looks at payments: anybody can cause any number, so clients have turns, and settlements never wait for them. */
import t from 'tap'
import { pause, systemClock } from '../../../src/actor/clock.js'
import type { Request } from '../../../src/http/exchange.js'
import { UsdcUploads } from '../../../src/upload/usdc/usdc-uploads.js'

t.test('an offer comes in the turn of its client', async (t) => {
  let [running, most] = [0, 0]
  const usdc = {
    offer: async () => {
      running += 1
      most = Math.max(most, running)
      await pause(20)
      running -= 1
      return { status: 402, json: {}, lines: '' }
    },
  }
  const clientOf = ({ path }: Request): string => path
  const uploads = new UsdcUploads({ usdc, clientOf, clock: systemClock, protocol: 'https' } as never)
  const offer = (path: string) => uploads.offer({ path, query: '', header: () => undefined } as never, 1)
  let answered = 0
  const flood = Array.from({ length: 400 }, () =>
    offer('198.51.100.1').finally(() => {
      answered += 1
    }),
  )
  t.match(await offer('203.0.113.1'), { status: 402 })
  t.ok(answered < 100, `${answered} of the others before it`)
  t.ok(most <= 32, `${most} at once`)
  await Promise.all(flood)
})
