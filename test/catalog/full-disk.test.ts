import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const child = fileURLToPath(new URL('./limited-keeper.js', import.meta.url))

/** The system's own limit: writes beyond it fail, inside LMDB too. It counts in 512 bytes, and may be lifted again. */
function run(spill: string, limitBytes?: number): { readonly refused: number; readonly sum: string } {
  const limit = limitBytes === undefined ? '' : `ulimit -S -f ${limitBytes / 512} && `
  const printed = execFileSync('sh', ['-c', `${limit}exec "$@"`, 'sh', process.execPath, child, spill], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return JSON.parse(printed.toString()) as { refused: number; sum: string }
}

t.test(
  'a disk that is full refuses changes and loses none: said again, all is as it would have been',
  (t) => {
    const { refused: none, sum: truth } = run('tables')
    t.equal(none, 0)
    for (const [spill, limitBytes] of [
      ['tables', 2 ** 19],
      ['files', 2 ** 18],
    ] as const) {
      const { refused, sum } = run(spill, limitBytes)
      t.ok(refused >= 12, `${spill}: refused ${refused} times below ${limitBytes} bytes`)
      t.equal(sum, truth, 'the same index')
    }
    t.end()
  },
)
