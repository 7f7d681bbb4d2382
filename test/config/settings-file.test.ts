import { join } from 'node:path'
import t from 'tap'
import { type Config, readConfig, settingsInUse } from '../../config/read.js'

const folder = t.testdir({
  good: '# a comment\n\n; another\nPORT=4000\nexport ARNS_ROOT_HOST="a.example"\nADMIN_API_KEY=\'0123456789abcdef=#x\'\n',
  bad: 'PORT=4000\nADMIN_API_KEY is secret\n',
  unknown: 'RATE_LIMITER_TYP=memory\n',
})
const at = (name: string): string => join(folder, name)

const good = (environment: Record<string, string>): Config => {
  const read = readConfig({}, environment)
  if (Array.isArray(read)) throw new Error(read.join())
  return read
}

t.test('a file of settings comes before the environment, and after the command line', async (t) => {
  const environment = { SETTINGS_FILE: at('good'), PORT: '5000', ARNS_ROOT_HOST: 'b.example' }
  const { server, names, moderation } = good(environment)
  t.equal(server.port, 4000)
  t.strictSame(names.rootHosts, ['a.example'])
  t.equal(moderation.adminApiKey, '0123456789abcdef=#x')
  t.match(readConfig({ PORT: '6000' }, environment), { server: { port: 6000 } })
  t.match(settingsInUse(environment), { PORT: '4000', ADMIN_API_KEY: 'set' })
})

t.test('what is wrong in it is said, without values', async (t) => {
  t.strictSame(readConfig({}, { SETTINGS_FILE: at('bad') }), ['SETTINGS_FILE: line 2 is not NAME=value'])
  t.match(readConfig({}, { SETTINGS_FILE: at('none') }), [/^SETTINGS_FILE: ENOENT/])
  t.match(readConfig({}, { SETTINGS_FILE: at('unknown') }), [
    /RATE_LIMITER_TYP: no such setting; did you mean/,
  ])
})
