import { choice, custom, maybeText, readUrl, secret, text, whole } from './setting.js'

const word = /^[\x21-\x7e]{1,4096}$/

/** Verified content in an object store, as a second tier below the disk. */
export const contentStore = {
  kind: choice({
    env: 'CONTENT_STORE',
    default: 'none',
    of: ['none', 's3'],
    why: 's3: verified content is put into a bucket, too, and read from there before the network is used.',
  }),
  endpoint: custom<string | undefined>({
    env: 'S3_ENDPOINT',
    allowed: 'http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'The S3 service, addressed by path (ENDPOINT/BUCKET/KEY). Absent: that of AWS in AWS_REGION.',
  }),
  bucket: maybeText({
    env: 'S3_BUCKET',
    shape: /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/,
    allowed: 'the name of a bucket, 2 to 63 letters',
    why: 'The bucket, which must exist.',
  }),
  prefix: text({
    env: 'S3_PREFIX',
    default: '',
    shape: /^(?!\/)[A-Za-z0-9/!_.*'()-]{0,255}(?<!\/)$/,
    allowed: 'letters, digits and /!_.*()-, no slash at either end',
    why: "What keys begin with, before a slash and the id: as ar-io-node's AWS_S3_CONTIGUOUS_DATA_PREFIX.",
  }),
  region: text({
    env: 'AWS_REGION',
    default: 'us-east-1',
    shape: /^[A-Za-z0-9-]{1,64}$/,
    allowed: 'the name of a region',
    why: 'The region that requests to S3 are signed for.',
  }),
  accessKeyId: secret(
    maybeText({
      env: 'AWS_ACCESS_KEY_ID',
      shape: word,
      allowed: 'one word',
      why: 'Credentials for S3. They are never logged.',
    }),
  ),
  secretAccessKey: secret(
    maybeText({
      env: 'AWS_SECRET_ACCESS_KEY',
      shape: word,
      allowed: 'one word',
      why: 'The secret that belongs to AWS_ACCESS_KEY_ID.',
    }),
  ),
  sessionToken: secret(
    maybeText({
      env: 'AWS_SESSION_TOKEN',
      shape: word,
      allowed: 'one word',
      why: 'With temporary credentials only.',
    }),
  ),
  credentialsPath: maybeText({
    env: 'AWS_SHARED_CREDENTIALS_FILE',
    allowed: 'a path',
    why: 'A file with the credentials, in the form of AWS, instead of the three above; its profile default is used.',
  }),
  timeoutMs: whole({
    env: 'S3_TIMEOUT_MS',
    default: 2000,
    min: 50,
    max: 60_000,
    why: 'Until the head of an answer of S3. After three failures in a row S3 is left alone for 1 to 30 seconds.',
  }),
  hedgeMs: whole({
    env: 'STORE_HEDGE_MS',
    default: 250,
    min: 1,
    max: 60_000,
    why: 'When S3 has not answered for so long, the network gets the request, too, and the first answer is taken.',
  }),
  nodeName: maybeText({
    env: 'CLUSTER_NODE',
    shape: /^(?!.*--\d+$)[a-z0-9][a-z0-9.-]{0,62}$/,
    allowed: 'small letters, digits, dots and hyphens, at most 63, without -- and a number at its end',
    why:
      'Name of this machine among those that share a bucket or a database. A machine with an empty disk takes up the ' +
      'accepted uploads that are in the bucket under its name. Unset: its host name.',
  }),
  keepMinBytes: whole({
    env: 'STORE_KEEP_MIN_BYTES',
    default: 262_144,
    min: 0,
    max: 4_194_304,
    why: 'Smaller content lies in packs of 8 MiB, because each object costs a request; 0: each is an object.',
  }),
  dailyMaxBytes: whole({
    env: 'STORE_DAILY_MAX_BYTES',
    default: 100 * 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 50,
    why: 'Verified content that this gateway puts into the bucket a day, at most. `sluice store push` may exceed it.',
  }),
  maxBytes: whole({
    env: 'STORE_MAX_BYTES',
    default: 2 ** 40,
    min: 2 ** 20,
    max: 2 ** 53 - 1,
    why: 'Verified content that this gateway puts into the bucket in all, at most.',
  }),
}

/** What is missing for a store that is switched on. */
export function contentStoreFaults({
  kind,
  bucket,
  accessKeyId,
  secretAccessKey,
  credentialsPath,
}: {
  readonly kind: 'none' | 's3'
  readonly bucket: string | undefined
  readonly accessKeyId: string | undefined
  readonly secretAccessKey: string | undefined
  readonly credentialsPath: string | undefined
}): string[] {
  if (kind === 'none') return []
  const hasKeys = accessKeyId !== undefined && secretAccessKey !== undefined
  return [
    ...(bucket === undefined ? ['CONTENT_STORE=s3 needs S3_BUCKET'] : []),
    ...(hasKeys || credentialsPath !== undefined
      ? []
      : [
          'CONTENT_STORE=s3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE',
        ]),
  ]
}
