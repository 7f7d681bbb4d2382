import { randomBytes } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import t from 'tap'
import { encodeKey, S3Signer } from '../../../src/source/objects/s3-requests.js'
import { fc } from '../../property.js'

const atMs = Date.parse('2013-05-24T00:00:00Z')
/** Those of the examples in AWS's documentation. */
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

t.test('requests are signed as another implementation signs them', async (t) => {
  const text = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 30 })
  const key = fc
    .string({ minLength: 1, maxLength: 60, unit: 'binary' })
    .filter((one) => !/(^|\/)\.{1,2}(\/|$)/.test(one))
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        key,
        prefix: text,
        meta: fc.stringMatching(/^[!-~][ -~]{0,30}$/),
        isNew: fc.boolean(),
        hasToken: fc.boolean(),
        port: fc.constantFrom('', ':9000'),
        method: fc.constantFrom('GET' as const, 'PUT' as const, 'HEAD' as const),
      }),
      async ({ key, prefix, meta, isNew, hasToken, port, method }) => {
        const endpoint = `https://s3.example${port}`
        const who = { ...credentials, ...(hasToken ? { sessionToken: 'a-token' } : {}) }
        const sha256 = randomBytes(32)
        const headers = {
          'x-amz-meta-payload-content-type': meta,
          ...(isNew ? { 'if-none-match': '*' } : {}),
          range: 'bytes=0-9',
        }
        const query = { prefix, 'list-type': '2' }
        const signer = new S3Signer({ endpoint, region: 'eu-west-1', bucket: 'content' }, () => who)
        const ours = signer.sign({ method, key, query, headers, sha256 }, atMs)
        const theirs = await new AwsV4Signer({
          method,
          url: endpoint + ours.path,
          headers: { ...headers, 'x-amz-content-sha256': sha256.toString('hex') },
          ...who,
          service: 's3',
          region: 'eu-west-1',
          datetime: '20130524T000000Z',
        }).sign()
        t.equal(ours.headers.authorization, theirs.headers.get('authorization'), JSON.stringify(key))
      },
    ),
    { numRuns: 100 },
  )
})

t.test('a key is one path, whatever is in it', async (t) => {
  t.equal(encodeKey("/a b/+*'()!~-_.é?#"), '/a%20b/%2B%2A%27%28%29%21~-_.%C3%A9%3F%23')
  const signer = new S3Signer(
    { endpoint: 'http://host:1/base/', region: 'a', bucket: 'b' },
    () => credentials,
  )
  t.equal(signer.sign({ method: 'GET', key: '/id' }, atMs).path, '/base/b//id', 'slashes stay')
  t.equal(signer.sign({ method: 'GET', query: { b: '1', a: 'x y' } }, atMs).path, '/base/b?a=x%20y&b=1')
})
