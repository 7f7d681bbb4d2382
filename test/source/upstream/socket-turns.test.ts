import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { SocketTurns } from '../../../src/source/upstream/socket-turns.js'

const never = new AbortController().signal
const url = 'http://gateway.example'
/** Each wait is over soon, and keeps the test running. */
const hasty: Clock = {
  ...systemClock,
  after(_, act) {
    const timer = setImmediate(act)
    return { cancel: () => clearImmediate(timer) }
  },
}

t.test('the rest of a broken body needs no turn, and is counted', async (t) => {
  const turns = new SocketTurns(2, 20, hasty)
  const hold = await turns.wait(url, '10.0.0.1', never)
  if (isRefusal(hold)) throw new Error(hold.message)
  const first = hold()
  t.match(await turns.wait(url, '10.0.0.1', never), { refused: 'busy', fault: 'self' }, 'it has its half')
  const rest = hold()
  first()
  t.match(await turns.wait(url, '10.0.0.1', never), { refused: 'busy' })
  rest()
  t.type(await turns.wait(url, '10.0.0.1', never), 'function')
  const left = new AbortController()
  left.abort()
  t.match(await turns.wait(url, '10.0.0.1', left.signal), { refused: 'busy' })
})
