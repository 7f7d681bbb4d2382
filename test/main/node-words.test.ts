import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = new URL('../../../', import.meta.url)
const program = fileURLToPath(new URL('bin/sluice.mjs', root))

t.test('every way to start the program gives Node the same words', async (t) => {
  const [first = ''] = readFileSync(program, 'utf8').split('\n')
  const [, words = ''] = /^#!\/usr\/bin\/env -S node (.+)$/.exec(first) ?? []
  t.equal(words, '--single-threaded-gc')
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    scripts: Record<string, string>
  }
  t.match(scripts.start, `node ${words} bin/sluice.mjs start`)
  t.match(readFileSync(new URL('deploy/sluice.service', root), 'utf8'), `node ${words} /opt/sluice/bin`)
  t.match(readFileSync(new URL('deploy/Dockerfile', root), 'utf8'), 'ENTRYPOINT ["sluice"]')
})

t.test('the program can be run as a file', async (t) => {
  const { status, stdout } = spawnSync(program, ['--help'], { encoding: 'utf8' })
  t.equal(status, 0)
  t.match(stdout, 'Usage: sluice COMMAND')
})
