import { constants } from 'node:os'
import t from 'tap'
import { allEnded, Rounds } from '../../src/ingest/rounds.js'
import { diskError } from '../../src/store/disk-error.js'

t.test('a round that meets a full disk is begun again; any other error ends them', async (t) => {
  const events: string[] = []
  const disk = { failed: () => void events.push('failed'), well: () => void events.push('well') }
  let rounds = 0
  const work = new Rounds(
    async () => {
      rounds += 1
      if (rounds === 1) throw diskError(constants.errno.ENOSPC, 'a test')
      if (rounds === 3) throw new TypeError('a bug')
      return 0
    },
    disk,
    1,
  )
  await t.rejects(work.run(), TypeError)
  t.equal(rounds, 3)
  t.strictSame(events, ['failed', 'well'])
})

t.test('no part of a failed round goes on beside the next one', async (t) => {
  let isOver = false
  const slow = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    isOver = true
  })
  await t.rejects(allEnded([Promise.reject(new Error('first')), slow]), /first/)
  t.ok(isOver)
})
