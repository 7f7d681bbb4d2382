import { custom, maybeText, readUrl, secret } from './setting.js'

/** Letters of the payment service: the mail server, and the page of gifts that they name. */

export const mail = {
  smtpUrl: secret(
    maybeText({
      env: 'PAYMENT_SMTP_URL',
      allowed: 'an smtp:// or smtps:// address',
      shape: /^smtps?:\/\/\S+$/,
      why: 'Mail server that tells receivers of their gifts. Unset: letters stay in the outbox, for the operator to read.',
    }),
  ),
  smtpFrom: maybeText({
    env: 'PAYMENT_SMTP_FROM',
    allowed: 'an e-mail address',
    shape: /^[^\r\n]{1,200}@[^\s@<>]{1,200}>?$/,
    why: 'Who these letters are from.',
  }),
  giftUrl: custom<string | undefined>({
    env: 'PAYMENT_GIFT_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Page where gifts are redeemed, named in these letters. Unset: /gift of the payment service.',
  }),
}

/** What is wrong with these settings taken together. */
export function mailFaults(given: {
  readonly smtpUrl: string | undefined
  readonly smtpFrom: string | undefined
}): string[] {
  return (given.smtpUrl === undefined) === (given.smtpFrom === undefined)
    ? []
    : ['PAYMENT_SMTP_URL and PAYMENT_SMTP_FROM need each other']
}
