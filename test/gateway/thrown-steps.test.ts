import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Admission } from '../../src/admission/admission-port.js'
import { blobPath } from '../../src/store/blobs.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { eventually } from '../eventually.js'
import { openFiles } from '../open-files.js'
import { someId } from '../source/rig.js'
import { type Stage, stage } from './rig.js'

const bug = (): never => {
  throw new Error('a bug of a step')
}

const open = { takeFirst: () => true, freeDelayMs: () => 0 }

const admissions: Readonly<Record<string, Admission>> = {
  'throws at once': { ...open, admit: bug },
  'rejects later': { ...open, admit: async () => bug() },
}

for (const [what, admission] of Object.entries(admissions))
  t.test(`what was opened for an answer is closed where the step admit ${what}`, async (t) => {
    const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 0 }, systemClock)
    t.teardown(() => files.close())
    const stored = new Set<{ readonly readers: number }>()
    const on: Stage = await stage({
      parts: {
        admission,
        blobs: {
          path: (digest) => blobPath(on.rig.store.folder, digest),
          open(path) {
            const content = files.open(path)
            if (content !== undefined) stored.add(content as unknown as { readonly readers: number })
            return content
          },
        },
      },
    })
    t.teardown(() => on.close())
    const kept = someId()
    // Kept open for the next reader.
    const keptPath = await on.keep(kept, randomBytes(3_000_000), { contentType: 'image/png' })
    const missed = Array.from({ length: 12 }, () => someId())
    for (const id of missed) on.has.set(id, { body: randomBytes(3_000_000), contentType: 'image/png' })
    const paths = [
      kept,
      `raw/${kept}`,
      `tx/${kept}/data`,
      ...missed.map((id, at) => ['', 'raw/'][at % 2] + id),
    ]
    for (const path of paths) {
      const answer = await on.ask(`/${path}`)
      t.equal(answer.status, 500, path)
    }
    t.same(
      [...stored].map(({ readers }) => readers),
      [0],
      'no stored content has a reader',
    )
    await eventually('no transfer has a reader', () => on.rig.fetcher.held === 0)
    const open = (): string[] => openFiles(on.rig.store.folder).filter((path) => path !== keptPath)
    await eventually('no file of a transfer stays open', () => open().length === 0)
  })
