import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CredentialsFile, readCredentials } from '../../../src/source/objects/s3-credentials.js'
import { errorCode, keysOfList, refusalOfStatus } from '../../../src/source/objects/s3-requests.js'

t.test('credentials come from the default section of a file', async (t) => {
  const folder = t.testdir()
  const read = (text: string) => {
    const path = join(folder, 'credentials')
    writeFileSync(path, text)
    return readCredentials(path)
  }
  const own = 'aws_access_key_id = one\naws_secret_access_key=two\n'
  t.same(read(`# words\n[default]\n${own}`), { accessKeyId: 'one', secretAccessKey: 'two' })
  t.same(read(`[other]\naws_access_key_id=x\n\n[ default ]\r\n${own}aws_session_token = three\n`), {
    accessKeyId: 'one',
    secretAccessKey: 'two',
    sessionToken: 'three',
  })
  for (const text of ['', own, `[other]\n${own}`, '[default]\naws_access_key_id = one\n']) {
    const refused = read(text)
    t.type(refused, 'string')
    t.notMatch(refused, /two/)
  }
  t.match(readCredentials(join(folder, 'none')), /ENOENT/)
})

t.test('a file is read again, and says whether it has others', async (t) => {
  const path = join(t.testdir(), 'credentials')
  const write = (secret: string): void =>
    writeFileSync(path, `[default]\naws_access_key_id = one\naws_secret_access_key = ${secret}\n`)
  t.throws(() => new CredentialsFile(path), /ENOENT/)
  write('first')
  const file = new CredentialsFile(path)
  t.equal(file.renew(), false)
  write('second')
  t.equal(file.renew(), true)
  t.same(file.current, { accessKeyId: 'one', secretAccessKey: 'second' })
  writeFileSync(path, '')
  t.equal(file.renew(), false)
  t.equal(file.current.secretAccessKey, 'second', 'what is half written changes nothing')
})

t.test('what a status with its code means', async (t) => {
  const fault = (status: number, code?: string) => {
    const refusal = refusalOfStatus(status, code)
    return 'storeFault' in refusal ? refusal.storeFault : refusal.refused
  }
  t.equal(fault(404), 'unknown')
  t.equal(fault(404, 'NoSuchKey'), 'unknown')
  t.equal(fault(404, 'NoSuchBucket'), 'bucket')
  t.equal(fault(403), 'denied')
  t.equal(fault(403, 'RequestTimeTooSkewed'), 'clock')
  t.equal(fault(403, 'SignatureDoesNotMatch'), 'credentials')
  t.equal(fault(403, 'QuotaExceeded'), 'full')
  t.equal(fault(507), 'full')
  t.equal(fault(301, 'PermanentRedirect'), 'bucket')
  t.equal(fault(416), 'unsatisfiable')
  t.equal(fault(503, 'SlowDown'), 'busy')
  t.equal(fault(500), 'upstream')
  t.equal(fault(400, 'XAmzContentSHA256Mismatch'), 'upstream')
})

t.test('documents of others', async (t) => {
  t.equal(errorCode(Buffer.from('<?xml?><Error><Code>NoSuchKey</Code></Error>')), 'NoSuchKey')
  t.equal(errorCode(Buffer.from('<html>')), undefined)
  t.equal(errorCode(Buffer.from('<Code>a b\n</Code>')), undefined)
  const page =
    '<IsTruncated>true</IsTruncated><Contents><Key>a%2Bb+c%2F</Key></Contents><Contents><Key>%</Key></Contents>'
  t.same(keysOfList(page), { keys: ['a+b c/'], hasMore: true })
  t.same(keysOfList(''), { keys: [], hasMore: false })
})
