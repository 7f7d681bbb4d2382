import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const sluice = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))

/** Runs `sluice verify` with these words: exit code and what it said on standard error. */
function verify(...words: string[]): Promise<{ code: number; printed: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [sluice, 'verify', ...words], (error, _, printed) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, printed })
    })
  })
}

const nowhere = ['--gateway', 'http://127.0.0.1:9'] as const

t.test('an id that starts with a dash is an id, wherever it stands', async (t) => {
  const id = '-8V0K0DltgqPzBDa_FYyOdWnfhSngRj7ORH0lnOeqCA'
  for (const words of [
    [id, ...nowhere],
    [...nowhere, id],
  ]) {
    t.match(await verify(...words), { code: 5, printed: /cannot be reached/ })
  }
})

t.test('anything but one id is refused with a message', async (t) => {
  t.match(await verify(), { code: 2, printed: /give one ID/ })
  t.match(await verify('short'), { code: 2, printed: /is no id/ })
  const id = '8V0K0DltgqPzBDa_FYyOdWnfhSngRj7ORH0lnOeqChw'
  t.match(await verify(id, id), { code: 2, printed: /give one ID/ })
})
