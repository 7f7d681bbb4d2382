/** Imports that end at a bundle, as where it takes all memory: the next run does everything else first. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { refuse } from '../../src/format/refusal.js'
import { BulkImport, type BulkParts } from '../../src/ingest/bulk-import.js'
import { bundleAgenda, encodeBundleTask } from '../../src/ingest/bundle-tasks.js'
import { OpeningMarks } from '../../src/ingest/opening-marks.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

const ids = Array.from({ length: 6 }, (_, at) => idOfBytes(Buffer.alloc(32, at + 1)))
const deadly = ids[2] as Id
const absent = refuse('unknown', 'upstream', 'its bytes are not in the folder')

t.test('a bundle at which runs end is opened after all others, alone, and left in the end', async (t) => {
  const environment = openEnvironment(scratch('import-suspects'))
  t.teardown(() => environment.close())
  const bundles = bundleAgenda(environment, 100)
  const owner = Buffer.alloc(32)
  const tasks = ids.map((id) => ({ key: idBytes(id), value: encodeBundleTask({ owner }) }))
  bundles.put(tasks, 0)
  /** Begins an import; it stands still at the deadly bundle, as a process that is gone does. */
  const imported = () => {
    const opened: Id[] = []
    const openData = (id: Id): Promise<unknown> => {
      opened.push(id)
      return id === deadly ? new Promise(() => undefined) : Promise.resolve(absent)
    }
    const row = (key: Uint8Array) => ({ key, height: 1, size: 1 })
    const index = { refresh: () => undefined, topHeight: () => undefined, row }
    const parts = {
      folder: { blocks: async () => [], dataIds: () => ids, openData },
      queue: { index, keep: async () => undefined, whenKept: (act: () => void) => act() },
      bundles,
      marks: new OpeningMarks(environment, bundles),
      clock: systemClock,
    } as unknown as BulkParts
    const none = (): void => undefined
    const progress = { blocks: none, transactions: none, bundles: none, items: none }
    const rules = { heldMaxBytes: 1e6 } as never
    const over = new BulkImport(parts, { verify: false, rules }, progress).run(new AbortController().signal)
    return { opened, over }
  }
  const first = imported()
  await eventually('it is opened', () => first.opened.includes(deadly))
  // All that were begun together are suspects of the second run. Those that end well are none any more.
  for (const before of [2, ids.length - 1]) {
    const { opened } = imported()
    await eventually('it is opened again', () => opened.includes(deadly))
    t.strictSame([opened.length, opened.at(-1)], [before + 1, deadly])
  }
  const last = imported()
  const outcome = await last.over
  t.match(outcome, { bundles: ids.length - 1 })
  t.match(outcome, { left: [/./, /./, /./, /./, /./, new RegExp(`^${deadly}: 3 runs ended`)] })
  t.notOk(last.opened.includes(deadly))
  t.ok(bundles.find(idBytes(deadly)), 'the gateway opens it')
})
