/** Parts on a disk that refuses in the middle of a write. */
import { execFileSync, spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import t from 'tap'
import { isRefusal } from '../../../src/format/refusal.js'
import { FileDraft, PartFiles } from '../../../src/upload/parts/part-files.js'

const skip = spawnSync('prlimit', ['--version']).error !== undefined && 'prlimit is not installed'

/** Files of this process may not become larger: to it, it is a full disk. */
function limitFiles(bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])
}

t.test('what a full disk took of a piece does not stay behind the counted bytes', { skip }, async (t) => {
  const ignore = (): void => undefined
  process.on('SIGXFSZ', ignore)
  t.teardown(() => process.off('SIGXFSZ', ignore))
  const files = new PartFiles(t.testdir())
  const draft = files.draft('upload')
  if (!(draft instanceof FileDraft)) throw new Error('no draft')
  const piece = Buffer.alloc(70_000, 7)
  t.equal(await draft.write(piece), undefined)
  limitFiles(100_000)
  const refused = await draft.write(piece)
  limitFiles('unlimited')
  t.ok(isRefusal(refused), 'the disk takes a part of the piece, then refuses')
  t.equal(draft.sizeBytes, piece.length)
  t.equal(await draft.keep(0), undefined)
  t.equal(statSync(files.path('upload', 0)).size, piece.length)
  t.strictSame([...files.kept('upload')], [[0, piece.length]])
})
