"""The CRC of the configuration logic, word by word.

CRC-32C, reflected, from 0, no final inversion. Each word written to a register
is 37 bits: its 32 bits, lowest first, then the 5 bits of the register's address.
"""

POLYNOMIAL = 0x82F63B78


def step(crc, register, word):
    """The definition: one bit after the other."""
    bits = (register & 31) << 32 | word
    for place in range(37):
        odd = (crc ^ bits >> place) & 1
        crc >>= 1
        if odd:
            crc ^= POLYNOMIAL
    return crc


# A step is linear in (crc ^ word): four look-ups do what 37 turns do.
_TABLES = [[step(byte << shift, 0, 0) for byte in range(256)] for shift in (0, 8, 16, 24)]
_REGISTER = [step(0, register, 0) for register in range(32)]


def word(crc, register, value):
    """One word written to a register."""
    low, second, third, high = _TABLES
    crc ^= value
    return (
        low[crc & 255]
        ^ second[crc >> 8 & 255]
        ^ third[crc >> 16 & 255]
        ^ high[crc >> 24]
        ^ _REGISTER[register & 31]
    )


def words(crc, register, values):
    """Many words written to one register."""
    low, second, third, high = _TABLES
    address = _REGISTER[register & 31]
    for value in values:
        crc ^= value
        crc = (
            low[crc & 255]
            ^ second[crc >> 8 & 255]
            ^ third[crc >> 16 & 255]
            ^ high[crc >> 24]
            ^ address
        )
    return crc
