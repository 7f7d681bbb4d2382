import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BandStore } from '../../src/bands/band-store.js'
import { L1Builder } from '../../src/bands/l1-builder.js'
import { isRefusal } from '../../src/format/refusal.js'
import { readL1Band } from '../../src/parquet/l1-band.js'
import { HandClock } from '../names/hand-clock.js'
import { folder, type L1House, l1House, madeChain, settle } from '../parquet/l1-chain.js'

const everyMs = 60_000
const schedule = { publisher: 'somebody', signatures: false, forkDepth: 9, everyMs }
const chain = [...madeChain(5100, 1)]

async function stage(t: Test, top: number) {
  const house = l1House(t)
  await settle(house, chain.slice(0, top + 1))
  const bandStore = new BandStore(folder(t))
  await bandStore.prepare()
  const clock = new HandClock()
  const own = join(bandStore.root, 'own', 'parquet-l1')
  return {
    house,
    bandStore,
    clock,
    builder: new L1Builder(house.index, bandStore, clock, schedule),
    /** Heights of the bands in place. */
    ranges: async () => {
      const bands = await Promise.all(
        (existsSync(own) ? readdirSync(own) : []).map((id) => readL1Band(join(own, id))),
      )
      return bands
        .flatMap((band) => (isRefusal(band) ? [] : [band.heightRange]))
        .sort(([, one], [, other]) => one - other)
    },
  }
}

function grow(house: L1House, from: number, top: number): Promise<void> {
  return settle(house, chain.slice(from, top + 1))
}

t.test('the band that is cut short is made anew when it is old enough, not with each block', async (t) => {
  const { house, builder, clock, ranges } = await stage(t, 30)
  const built: string[] = []
  const build = () => builder.build(1, (id) => built.push(id))
  t.equal(await build(), undefined)
  t.same(await ranges(), [[0, 20]], 'up to where no fork reaches')
  await grow(house, 31, 40)
  await build()
  t.equal(built.length, 1, 'still young')
  await clock.turn(everyMs)
  await build()
  t.same(await ranges(), [
    [0, 20],
    [0, 30],
  ])
  const [, second = ''] = built
  t.match(second, /^l1-h0-30-/)
  await clock.turn(everyMs)
  await build()
  t.equal(built.length, 2, 'nothing new, nothing built')
})

t.test(
  'a whole part is built at once, one band a time, and takes the place of what lies in it',
  async (t) => {
    const { house, bandStore, builder, ranges } = await stage(t, 30)
    const built: string[] = []
    const build = () => builder.build(1, (id) => built.push(id))
    await build()
    await grow(house, 31, 5100)
    await build()
    t.same(await ranges(), [
      [0, 20],
      [0, 4999],
    ])
    const whole = await readL1Band(join(bandStore.root, 'own', 'parquet-l1', built[1] ?? ''))
    t.match(whole, { supersedes: [built[0]] })
    await build()
    t.match(built[2], /^l1-h5000-5090-/)
    await build()
    t.equal(built.length, 3)
    t.same(readdirSync(join(bandStore.root, 'tmp')), [], 'no draft is left behind')
  },
)

t.test('a range that cannot be built does not stop later ones, and is tried again', async (t) => {
  const { house, builder, clock, ranges } = await stage(t, -1)
  const without = chain.map((made, height) => {
    if (height !== 7) return made
    const { header: _header, ...block } = made.block
    return { ...made, block }
  })
  await settle(house, without)
  const ids: string[] = []
  const build = () => builder.build(1, (id) => ids.push(id))
  t.match(await build(), { message: /block 7 was indexed by a version/ })
  t.same(await ranges(), [[5000, 5090]])
  t.equal(await build(), undefined, 'not with each round')
  await clock.turn(everyMs)
  t.match(await build(), { refused: 'unknown' })
  t.equal(ids.length, 1)
})

t.test('stopping does not wait for a band to be built', async (t) => {
  const { house, builder, ranges, bandStore } = await stage(t, -1)
  await settle(house, chain)
  const stopping = new AbortController()
  const building = builder.build(1, () => undefined, stopping.signal)
  stopping.abort()
  await t.rejects(building, { name: 'AbortError' })
  t.same(await ranges(), [])
  t.same(readdirSync(join(bandStore.root, 'tmp')), [])
})
