import t from 'tap'
import { HeldMemory, type MemoryHolder } from '../../src/actor/held-memory.js'
import { HandClock } from '../http/hand-clock.js'

function rig(maxBytes: number, clock = new HandClock()) {
  const memory = new HeldMemory(maxBytes, clock)
  const dropped: string[] = []
  const enter = (client: string): MemoryHolder => {
    const holder: MemoryHolder = memory.enter(client, () => {
      dropped.push(client)
      memory.leave(holder)
    })
    return holder
  }
  return { memory, dropped, enter }
}

t.test('who holds most makes room for who holds less, whatever their addresses', async (t) => {
  const { memory, dropped, enter } = rig(1000)
  // Many addresses of one provider, each with little.
  const many = Array.from({ length: 100 }, (_, at) => enter(`10.0.${at}.1`))
  for (const one of many) t.ok(memory.grow(one, 10))
  t.notOk(memory.grow(many[3] as MemoryHolder, 1), 'networks of one provider have the same: none makes room')
  const newcomer = enter('20.0.0.1')
  t.ok(memory.grow(newcomer, 100))
  t.equal(dropped.length, 10)
  t.ok(dropped.every((client) => client.startsWith('10.0.')))
  t.equal(memory.bytes, 1000)
  t.ok(memory.grow(newcomer, 350))
  t.notOk(memory.grow(newcomer, 200), 'it would hold more than who holds most')
  for (const one of [...many, newcomer]) memory.leave(one)
  t.equal(memory.bytes, 0)
})

t.test('one client alone gets no more than there is, and drops nothing of its own', async (t) => {
  const { memory, dropped, enter } = rig(100)
  const [one, other] = [enter('10.0.0.1'), enter('10.0.0.1')]
  t.ok(memory.grow(one, 100))
  t.notOk(memory.grow(other, 1))
  t.same(dropped, [])
  memory.leave(one)
  memory.leave(one)
  t.ok(memory.grow(other, 1))
  t.notOk(memory.grow(one, 1), 'who has left holds nothing again')
  t.equal(memory.bytes, 1)
})

t.test('what can move moves first, for anybody, and ends nobody', async (t) => {
  const { memory, dropped, enter } = rig(100)
  const moved: string[] = []
  const movable = (client: string): MemoryHolder => {
    const holder: MemoryHolder = memory.enter(
      client,
      () => {
        moved.push(client)
        memory.grow(holder, -holder.weight)
      },
      true,
    )
    return holder
  }
  const [one, other] = [movable('10.0.0.1'), movable('20.0.0.1')]
  const fixed = enter('30.0.0.1')
  t.ok(memory.grow(one, 50))
  t.ok(memory.grow(other, 50))
  t.ok(memory.grow(fixed, 80), 'it would hold more than each of them')
  t.same(moved.sort(), ['10.0.0.1', '20.0.0.1'])
  t.ok(memory.grow(one, 20), 'it goes on in memory')
  t.notOk(memory.grow(one, 10), 'and moves itself before others are ended')
  t.same(dropped, [])
  memory.pin(one)
  t.notOk(memory.grow(fixed, 10), 'what is at work does not move')
  for (const holder of [one, other, fixed]) memory.leave(holder)
  t.equal(memory.bytes, 0)
})

t.test('many slow requests of many networks keep no usual one out', async (t) => {
  const clock = new HandClock()
  const { memory, dropped, enter } = rig(64 * 2 ** 20, clock)
  const slow = Array.from({ length: 1118 }, (_, at) => enter(`${1 + (at % 200)}.${at >> 3}.0.1`))
  for (const one of slow) memory.grow(one, 60_000)
  const early = enter('220.0.0.1')
  t.notOk(memory.grow(early, 340_000), 'nobody is slow yet, and nobody holds more')
  memory.leave(early)
  clock.turn(4000)
  for (let round = 0; round < 20; round += 1) {
    const usual = enter(`2${round}0.0.0.1`)
    t.ok(memory.grow(usual, 340_000))
    memory.leave(usual)
  }
  t.equal(dropped.length, 6, 'as many as it takes')
  const late = enter('230.0.0.1')
  memory.grow(late, 20_000)
  clock.turn(10_000)
  t.notOk(memory.grow(late, 400_000), 'who is slow ends nobody')
})

t.test('where few are slow they are found among many that are not', async (t) => {
  const clock = new HandClock()
  const { memory, dropped, enter } = rig(1000 * 60_000, clock)
  const all = Array.from({ length: 1000 }, (_, at) => enter(`${1 + (at % 200)}.${at >> 3}.0.1`))
  for (const one of all) memory.grow(one, one === all[700] ? 20_000 : 60_000)
  memory.grow(enter('210.0.0.1'), 40_000)
  clock.turn(3500)
  let tries = 0
  for (; tries < 20 && dropped.length === 0; tries += 1) {
    const usual = enter('220.0.0.1')
    memory.grow(usual, 61_000)
    memory.leave(usual)
  }
  t.ok(tries <= 16, `${tries} tries of 64 looks each`)
  t.equal(dropped.length, 1)
})
