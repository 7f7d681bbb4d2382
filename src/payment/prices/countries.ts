/** Names of countries in the order in which forms show them: two first, the rest by the alphabet. */
const codes =
  'AL DZ AR AM AU AT AZ BH BD BE BJ BO BA BR BG KH CA CL CO CR HR CY CZ DK DO EC EG SV EE ET FI FR GA GM GE DE GH GR ' +
  'GT HK HU IS IN ID IE IL IT CI ' +
  'JM JP JO KZ KE KW LV LI LT LU MO MY MT MU MX MD MC MN MA NA NL NZ NG MK NO OM PK PA PY PE PH PL PT QA RO RW SA SN RS SG ' +
  'SK SI ZA KR ES LK SE CH TW TZ TH TT TN TR UG UA AE UY UZ VN'

const names = new Intl.DisplayNames(['en'], { type: 'region' })

function nameOf(code: string): string {
  return names.of(code) ?? code
}

/** Countries whose cards are taken. */
export const countries: readonly string[] = [
  nameOf('US'),
  nameOf('GB'),
  ...codes
    .split(' ')
    .map(nameOf)
    .sort((one, other) => one.localeCompare(other, 'en')),
]
