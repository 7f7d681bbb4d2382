import t from 'tap'
import { readConfig, settingsInUse } from '../../config/read.js'

const url = 'https://clickhouse.example:8443/chain'

function wrong(given: Readonly<Record<string, string>>): string[] {
  const read = readConfig(given, {})
  return Array.isArray(read) ? read : []
}

t.test('ClickHouse is named by an address, and its password by a text or a file', async (t) => {
  t.same(wrong({ CLICKHOUSE_URL: url }), [])
  t.same(wrong({ CLICKHOUSE_URL: url, CLICKHOUSE_USER: 'reader', CLICKHOUSE_PASSWORD: 'two words' }), [])
  t.same(wrong({ CLICKHOUSE_URL: url, CLICKHOUSE_PASSWORD_FILE: '/run/secrets/clickhouse' }), [])
  t.same(wrong({ CLICKHOUSE_PASSWORD: 'word' }), [], 'which may be there for an importer')
  t.match(wrong({ CLICKHOUSE_URL: 'clickhouse:8123' }), [/CLICKHOUSE_URL/])
  t.match(wrong({ CLICKHOUSE_URL: 'http://user:word@clickhouse:8123' }), [/CLICKHOUSE_URL/])
  t.match(wrong({ CLICKHOUSE_PASSWORD_FILE: '/run/secrets/clickhouse' }), [/needs CLICKHOUSE_URL/])
  t.match(wrong({ CLICKHOUSE_PUSH: 'true' }), [/CLICKHOUSE_PUSH needs CLICKHOUSE_URL/])
  t.same(wrong({ CLICKHOUSE_PUSH: 'true', CLICKHOUSE_URL: url }), [])
  const both = { CLICKHOUSE_URL: url, CLICKHOUSE_PASSWORD: 'word', CLICKHOUSE_PASSWORD_FILE: '/a' }
  t.match(wrong(both), [/exclude each other/])
})

t.test('the password is never shown', async (t) => {
  const shown = settingsInUse({ CLICKHOUSE_URL: url, CLICKHOUSE_PASSWORD: 'word-of-tests' })
  t.equal(shown.CLICKHOUSE_PASSWORD, 'set')
  const refused = wrong({ CLICKHOUSE_URL: url, CLICKHOUSE_PASSWORD: 'word\u0007of-tests' })
  t.match(refused, [/CLICKHOUSE_PASSWORD/])
  t.notMatch(refused.join(), /of-tests/)
})
