import t from 'tap'
import { BoundedSemaphore, type Release } from '../../src/chain/bounded-semaphore.js'
import { isRefusal } from '../../src/format/refusal.js'

async function taken(turns: BoundedSemaphore, signal?: AbortSignal): Promise<Release> {
  const turn = await turns.take(signal)
  if (isRefusal(turn)) throw new Error(turn.message)
  return turn
}

t.test('those who wait get their turns in the order they came', async (t) => {
  const turns = new BoundedSemaphore(1, 3)
  const first = await taken(turns)
  const order: number[] = []
  const waiting = [1, 2, 3].map(async (name) => {
    const turn = await taken(turns)
    order.push(name)
    turn()
  })
  t.match(await turns.take(), { refused: 'busy' })
  first()
  first()
  await Promise.all(waiting)
  t.same(order, [1, 2, 3])
  t.equal(turns.taken, 0, 'a turn given back twice counts once')
})

t.test('one who leaves the line makes room and takes no turn', async (t) => {
  const turns = new BoundedSemaphore(1, 1)
  const first = await taken(turns)
  const control = new AbortController()
  const left = turns.take(control.signal)
  control.abort()
  t.match(await left, { refused: 'late', fault: 'client' })
  const next = taken(turns)
  first()
  const turn = await next
  t.equal(turns.taken, 1)
  turn()
})
