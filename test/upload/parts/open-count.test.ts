import t from 'tap'
import { OpenCount } from '../../../src/upload/parts/open-count.js'
import type { OpenElsewhere } from '../../../src/upload/parts/part-records.js'

const uploads: OpenElsewhere[] = Array.from({ length: 3000 }, (_, at) => ({
  id: `upload-${at}`,
  client: '192.0.2.1',
  isPaid: false,
  bytes: at,
  files: 1,
}))

t.test('uploads are counted in portions, and less often where that takes long', async (t) => {
  let nowMs = 1000
  let costMs = 30
  let answers: readonly OpenElsewhere[] | undefined = uploads
  const listOpen = async (): Promise<readonly OpenElsewhere[] | undefined> => {
    nowMs += costMs
    return answers
  }
  const open = new OpenCount({ listOpen }, { monotonic: () => nowMs })
  let turns = 0
  const next = (): void => {
    turns += 1
    ticking = setImmediate(next)
  }
  let ticking = setImmediate(next)
  const seen: string[] = []
  const ids = await open.count(({ id }) => seen.push(id))
  clearImmediate(ticking)
  t.strictSame(
    seen,
    uploads.map(({ id }) => id),
  )
  t.strictSame([...(ids ?? [])], seen)
  t.ok(turns >= 6, `${turns} turns of the event loop for others`)
  nowMs += 19 * costMs - 1
  t.equal(await open.count(() => t.fail('too early')), undefined)
  nowMs += 1
  costMs = 1
  t.equal((await open.count(() => undefined))?.size, 3000)
  answers = undefined
  nowMs += 100
  costMs = 6000
  t.equal(await open.count(() => t.fail('nothing is known')), undefined)
  answers = uploads
  costMs = 1
  t.equal((await open.count(() => undefined))?.size, 3000, 'an outage costs no pause')
})
