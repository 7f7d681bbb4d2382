import { maybeText, maybeUrls, secret } from './setting.js'

/** What the commands that upload and fetch take from the environment; the gateway itself reads none of it. */
export const client = {
  walletKey: secret(
    maybeText({
      env: 'WALLET_KEY',
      allowed: 'an Arweave JWK, or a private key in hexadecimal digits or base58',
      why: 'The key that uploads are signed with. A file (--key) is the better place: only its owner may read it.',
    }),
  ),
  drivePassword: secret(
    maybeText({
      env: 'DRIVE_PASSWORD',
      allowed: 'a text',
      why: 'The password of a private drive. A file (--password-file) is the better place: only its owner may read it.',
    }),
  ),
  uploadUrls: maybeUrls({
    env: 'CLIENT_UPLOAD_URL',
    why: 'The upload service that commands use; --upload goes over it, --network means known ones.',
  }),
  paymentUrls: maybeUrls({
    env: 'CLIENT_PAYMENT_URL',
    why: 'The payment service that commands use; --payment goes over it, --network means known ones.',
  }),
  gatewayUrls: maybeUrls({
    env: 'CLIENT_GATEWAY_URL',
    why: 'The gateways that commands use; --gateway goes over them, --network means known ones.',
  }),
}
