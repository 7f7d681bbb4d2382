const codes = { bold: 1, dim: 2, red: 31, green: 32, cyan: 36 }

/** Colours `text` when `stream` is a terminal that may show colours (https://no-color.org), else leaves it alone. */
export function paint(
  colour: keyof typeof codes,
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return stream.isTTY && stream.hasColors() ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text
}
