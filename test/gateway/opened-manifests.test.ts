import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Admission } from '../../src/admission/admission-port.js'
import { manifestType } from '../../src/gateway/open-manifests.js'
import { eventually } from '../eventually.js'
import { openFiles } from '../open-files.js'
import { someId } from '../source/rig.js'
import { stage } from './rig.js'

const grant = { lines: '', returnUnsent: () => undefined }
const admissions: Readonly<Record<string, Admission>> = {
  'at once': { takeFirst: () => true, freeDelayMs: () => 0, admit: () => grant },
  later: { takeFirst: () => true, freeDelayMs: () => 0, admit: () => Promise.resolve(grant) },
}

/** A manifest so large that it is a file of its own, and so a transfer with a descriptor. */
function manifestOf(target: string): Buffer {
  const filler = randomBytes(900_000).toString('base64')
  const paths = { a: { id: target } }
  return Buffer.from(
    JSON.stringify({ manifest: 'arweave/paths', version: '0.2.0', index: { path: 'a' }, paths, filler }),
  )
}

for (const [when, admission] of Object.entries(admissions))
  t.test(
    `a manifest that came from a source is closed before its target is served (admitted ${when})`,
    async (t) => {
      const on = await stage({ parts: { admission } })
      t.teardown(() => on.close())
      const target = someId()
      const body = randomBytes(2_000_000)
      // Kept open for the next reader.
      const kept = await on.keep(target, body, { contentType: 'image/png' })
      const ids = Array.from({ length: 12 }, () => someId())
      for (const id of ids) on.has.set(id, { body: manifestOf(target), contentType: manifestType })
      const open = (): string[] => openFiles(on.rig.store.folder).filter((path) => path !== kept)
      for (const [at, id] of ids.entries()) {
        const method = at % 3 === 2 ? 'HEAD' : 'GET'
        const headers = at % 3 === 1 ? { range: 'bytes=99999999-' } : {}
        const answer = await on.ask(`/${id}/`, { method, headers })
        t.equal(answer.status, at % 3 === 1 ? 416 : 200)
        if (at % 3 === 0) t.ok(answer.body.equals(body))
      }
      await eventually('no manifest stays open', () => open().length === 0)
      await eventually('no transfer has a reader', () => on.rig.fetcher.held === 0)
    },
  )
