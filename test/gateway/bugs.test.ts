/** A mistake of the program is answered 500 and logged with its stack; only what can be expected is 503 or 502. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { type Log, silentLog } from '../../src/actor/log.js'
import { type Buckets, BucketsUnreachable } from '../../src/admission/buckets.js'
import { Clients } from '../../src/admission/clients.js'
import { expected, isBug } from '../../src/format/bug.js'
import { isRefusal } from '../../src/format/refusal.js'
import { statusOf } from '../../src/http/status.js'
import { rateLimitRoutes } from '../../src/routes/rate-limit-routes.js'
import type { Source } from '../../src/source/source.js'
import { someClients } from '../admission/house.js'
import { eventually } from '../eventually.js'
import { rig, someId } from '../source/rig.js'
import { stage } from './rig.js'

/** A log that records all its lines. */
function listening(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const tell = (fields: object, message: string): void => {
    const err = 'err' in fields && fields.err instanceof Error ? fields.err.stack : ''
    lines.push(`${message} ${JSON.stringify(fields)} ${err}`)
  }
  const heard = { error: tell, warn: tell, info: tell, isLevelEnabled: () => true }
  return { log: Object.assign(Object.create(silentLog) as Log, heard), lines }
}

t.test('buckets that cannot be reached are 503, a bug in them is 500', async (t) => {
  let error: Error = new BucketsUnreachable('Redis did not answer')
  const failing = async (): Promise<never> => {
    throw error
  }
  const buckets = { rules: {}, ofClient: failing, ofResource: failing } as unknown as Buckets
  const { log, lines } = listening()
  const clients = new Clients(someClients, { low: 1, high: 2 })
  const routes = rateLimitRoutes({
    pathPrefix: '/gateway',
    buckets,
    clients,
    isAdmin: () => false,
    clock: systemClock,
    log,
  })
  const { ask, close } = await stage({ routes, parts: { log } })
  const path = '/gateway/rate-limit/ip/192.0.2.1'
  t.equal((await ask(path)).status, 503)
  error = new TypeError('undefined is not a function')
  t.equal((await ask(path)).status, 500)
  const line = await eventually('the bug is in the log', () =>
    lines.find((text) => text.includes('undefined is not a function')),
  )
  t.match(line, /bugs\.test\.[jt]s/, 'with its stack')
  await close()
})

t.test('failures and bugs in a fetch have different answers', async (t) => {
  let error: unknown = new TypeError('undefined is not a function')
  const source: Source = {
    name: 'test',
    async open() {
      throw error
    },
  }
  const { edge, fetcher, close } = await rig({ source })
  const reader = edge()
  const open = async (): Promise<[string, number] | undefined> => {
    const opened = await reader.open(someId())
    return isRefusal(opened) ? [opened.refused, statusOf[opened.refused]] : undefined
  }
  t.same(await open(), ['defect', 500])
  error = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  t.same(await open(), ['busy', 503])
  t.equal(fetcher.held, 0)
  await close()
})

t.test('bugs are not mistaken for expected errors', async (t) => {
  const bugs = [new TypeError('x'), new RangeError('x'), new ReferenceError('x'), 'x', undefined]
  const others = [
    Object.assign(new Error('x'), { code: 'ECONNRESET' }),
    new DOMException('x', 'AbortError'),
    new DOMException('x', 'TimeoutError'),
    new Error('answered nonsense'),
  ]
  for (const error of bugs) {
    t.ok(isBug(error), String(error))
    t.throws(() => expected(error))
  }
  for (const error of others) t.equal(expected(error), error)
})
