import t from 'tap'
import { readConfig, settingsInUse } from '../../config/read.js'

const keys = { AWS_ACCESS_KEY_ID: 'public-part', AWS_SECRET_ACCESS_KEY: 'private-part' }
const whole = { CONTENT_STORE: 's3', S3_BUCKET: 'content', ...keys }

function wrong(given: Readonly<Record<string, string>>): string[] {
  const read = readConfig(given, {})
  return Array.isArray(read) ? read : []
}

t.test('a store is switched on with a bucket and credentials, and off without a word', async (t) => {
  t.same(wrong({}), [])
  t.same(wrong(keys), [], 'credentials may be there for other programs')
  t.same(wrong(whole), [])
  t.match(wrong({ ...keys, CONTENT_STORE: 's3' }), [/needs S3_BUCKET/])
  t.match(wrong({ CONTENT_STORE: 's3', S3_BUCKET: 'content' }), [/AWS_SHARED_CREDENTIALS_FILE/])
  t.same(wrong({ CONTENT_STORE: 's3', S3_BUCKET: 'content', AWS_SHARED_CREDENTIALS_FILE: '/etc/s3' }), [])
  t.match(wrong({ ...whole, CONTENT_STORE: 'disk' }), [/CONTENT_STORE/])
})

t.test('a prefix has no slash at its ends, and an endpoint no credentials', async (t) => {
  for (const prefix of ['a', 'a/b', 'mainnet-1_2.3'])
    t.same(wrong({ ...whole, S3_PREFIX: prefix }), [], prefix)
  for (const prefix of ['/a', 'a/', 'a b', 'ä'])
    t.equal(wrong({ ...whole, S3_PREFIX: prefix }).length, 1, prefix)
  t.equal(wrong({ ...whole, S3_ENDPOINT: 'https://user:word@host' }).length, 1)
  t.equal(wrong({ ...whole, S3_ENDPOINT: 'host:9000' }).length, 1)
  t.equal(wrong({ ...whole, S3_BUCKET: 'a/b' }).length, 1)
})

t.test('secrets are not shown', async (t) => {
  const shown = JSON.stringify([
    settingsInUse(whole),
    wrong({ ...whole, AWS_SECRET_ACCESS_KEY: 'two words' }),
  ])
  t.notMatch(shown, /public-part|private-part|two words/)
})

t.test('where uploads are kept is said in words that are known, and a store needs one', async (t) => {
  for (const UPLOAD_DURABILITY of ['disk', 'store', 'disk,store', 'store,disk'])
    t.same(wrong({ ...whole, UPLOAD_DURABILITY }), [], UPLOAD_DURABILITY)
  for (const UPLOAD_DURABILITY of ['disc', 'disk,', 'disk store', 'none'])
    t.equal(wrong({ ...whole, UPLOAD_DURABILITY }).length, 1, UPLOAD_DURABILITY)
  t.same(wrong({ UPLOAD_DURABILITY: 'disk' }), [])
  t.match(wrong({ UPLOAD_DURABILITY: 'store' }), [/needs a store: set CONTENT_STORE=s3/])
  for (const CLUSTER_NODE of ['a', 'gateway-1.example', '9'.repeat(63)])
    t.same(wrong({ CLUSTER_NODE }), [], CLUSTER_NODE)
  for (const CLUSTER_NODE of ['A', '-a', 'a/b', 'a b', '9'.repeat(64)])
    t.equal(wrong({ CLUSTER_NODE }).length, 1, CLUSTER_NODE)
})
